use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Port,
    Verbose,
    Cpu,
    Version,
    Json,
    Portion,
    Portrait,
}

fn flag(id: Id, short: Option<char>, long: &'static str, takes: Takes) -> Flag<Id> {
    Flag { short, long, takes, value_name: "N", help: "Help.", is_ours: false, meaning: id }
}

fn ours(id: Id, long: &'static str) -> Flag<Id> {
    Flag { is_ours: true, ..flag(id, None, long, Takes::Nothing) }
}

fn digits(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

fn table() -> [Flag<Id>; 7] {
    [
        flag(Id::Port, Some('p'), "port", Takes::Value),
        flag(Id::Verbose, Some('V'), "verbose", Takes::Joined),
        flag(Id::Cpu, Some('c'), "", Takes::NextIf(digits)),
        flag(Id::Version, Some('v'), "version", Takes::Nothing),
        flag(Id::Json, None, "json", Takes::Nothing),
        ours(Id::Portion, "portion"),
        ours(Id::Portrait, "portrait"),
    ]
}

/// The flags and their arguments, and the operands.
#[derive(Debug, PartialEq)]
struct Read {
    flags: Vec<(Id, Option<String>)>,
    operands: Vec<String>,
}

fn lex(line: &str) -> Result<Read, LexError> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let table = table();
    let Lexed { flags, operands } = parse_words(&table, &words)?;
    let flags = flags.into_iter().map(|(flag, value)| (flag.meaning, value)).collect();
    Ok(Read { flags, operands })
}

fn flags(line: &str) -> Vec<(Id, Option<String>)> {
    lex(line).unwrap().flags
}

fn with(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[test]
fn letters_may_be_joined_to_each_other_and_to_their_argument() {
    assert_eq!(flags("-vp5"), [(Id::Version, None), (Id::Port, with("5"))]);
    assert_eq!(flags("-vp 5"), [(Id::Version, None), (Id::Port, with("5"))]);
    assert_eq!(flags("-V -Vx"), [(Id::Verbose, None), (Id::Verbose, with("x"))]);
}

#[test]
fn an_argument_is_taken_whatever_it_looks_like() {
    assert_eq!(flags("-p -5"), [(Id::Port, with("-5"))]);
    assert_eq!(flags("-p --"), [(Id::Port, with("--"))]);
}

#[test]
fn names_may_be_abbreviated_and_joined_to_their_argument() {
    assert_eq!(flags("--port=5"), [(Id::Port, with("5"))]);
    assert_eq!(flags("--po 5"), [(Id::Port, with("5"))]);
    assert_eq!(flags("--port="), [(Id::Port, with(""))]);
    assert_eq!(flags("--j"), [(Id::Json, None)]);
    let ambiguous = LexError::Ambiguous("ver".to_owned(), vec!["verbose", "version"]);
    assert_eq!(lex("--ver"), Err(ambiguous));
}

#[test]
fn a_name_of_ours_takes_no_abbreviation_from_the_originals() {
    assert_eq!(flags("--por 5"), [(Id::Port, with("5"))]);
    assert_eq!(flags("--port 5"), [(Id::Port, with("5"))]);
    assert_eq!(flags("--porti --portrait"), [(Id::Portion, None), (Id::Portrait, None)]);
    assert_eq!(flags("--portr"), [(Id::Portrait, None)]);
    let several = [ours(Id::Portion, "portion"), ours(Id::Portrait, "portrait")];
    let words = ["--port".to_owned()];
    let ambiguous = LexError::Ambiguous("port".to_owned(), vec!["portion", "portrait"]);
    assert_eq!(parse_words(&several, &words).err(), Some(ambiguous));
}

#[test]
fn the_next_word_belongs_to_a_flag_if_it_looks_right() {
    assert_eq!(flags("-c 100"), [(Id::Cpu, with("100"))]);
    assert_eq!(flags("-c -v"), [(Id::Cpu, None), (Id::Version, None)]);
    assert_eq!(flags("-cv 100"), [(Id::Cpu, None), (Id::Version, None)]);
}

#[test]
fn operands_come_from_between_flags_and_after_two_dashes() {
    let lexed = lex("one -v two -- -p three").unwrap();
    assert_eq!(lexed.flags, [(Id::Version, None)]);
    assert_eq!(lexed.operands, ["one", "two", "-p", "three"]);
    assert_eq!(lex("-").unwrap().operands, ["-"]);
}

#[test]
fn errors_read_like_the_c_librarys() {
    for (line, text) in [
        ("-x", "invalid option -- 'x'"),
        ("-vx", "invalid option -- 'x'"),
        ("-p", "option requires an argument -- 'p'"),
        ("--port", "option '--port' requires an argument"),
        ("--nothing=1", "unrecognized option '--nothing'"),
        ("--json=1", "option '--json' doesn't allow an argument"),
        ("--ver", "option '--ver' is ambiguous; possibilities: '--verbose' '--version'"),
    ] {
        assert_eq!(lex(line).unwrap_err().to_string(), text, "{line}");
    }
}

#[test]
fn help_shows_letter_name_and_argument() {
    let help = render_flags(&table());
    assert!(help.starts_with("    -p, --port N       Help.\n"), "{help}");
    assert!(help.contains("    -c [N]  "), "{help}");
    assert!(help.contains("    --json  "), "{help}");
}
