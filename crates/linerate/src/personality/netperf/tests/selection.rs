//! What can be selected, and how it is written.

use super::super::planning::{Request, Work};
use super::super::reading::{Read, read};
use super::fixture::{printed, said};

/// What a word after `-k` selects, and the names that select nothing.
fn selected(word: &str) -> (String, Vec<String>) {
    let selection = asked(word).selection.unwrap();
    (format!("{selection:?}"), selection.unknown)
}

fn asked(word: &str) -> Request {
    let words = ["-t", "TCP_STREAM", "--", "-k", word].map(str::to_owned);
    match read("netperf", &words) {
        Read::Work(_, Work::Test(request), _) => *request,
        other => panic!("{word}: {other:?}"),
    }
}

#[test]
fn names_have_commas_or_blanks_between_them() {
    for (word, names) in [
        ("throughput", r#"["THROUGHPUT"]"#),
        ("THROUGHPUT, ELAPSED_TIME UUID", r#"["THROUGHPUT", "ELAPSED_TIME", "UUID"]"#),
        (
            "THROUGHPUT  ,UUID;OUTPUT_NONE DIRECTION",
            r#"["THROUGHPUT", "UUID", "OUTPUT_NONE", "DIRECTION"]"#,
        ),
        ("UUID,output_end,PROTOCOL;DIRECTION", r#"["UUID", "DIRECTION"]"#),
        ("OUTPUT_END", "[]"),
    ] {
        assert_eq!(selected(word), (names.to_owned(), Vec::new()), "{word}");
    }
    let (names, unknown) = selected("Elapsed Time (sec),UUID");
    assert_eq!(names, r#"["UUID"]"#);
    assert_eq!(unknown, ["Elapsed", "Time", "(sec)"]);
}

#[test]
fn blocks_behind_the_fourth_are_passed_over() {
    let (names, unknown) = selected("UUID;PROTOCOL;;DIRECTION;THROUGHPUT,BOGUS");
    assert_eq!(names, r#"["UUID", "PROTOCOL", "DIRECTION"]"#);
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn a_file_has_a_block_of_names_or_headings_in_each_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("selection");
    let selected = |text: &str| {
        std::fs::write(&path, text).unwrap();
        selected(&path.display().to_string())
    };
    let (names, unknown) = selected("THROUGHPUT,UUID\nELAPSED_TIME");
    assert_eq!((&*names, unknown.len()), (r#"["THROUGHPUT", "UUID", "ELAPSED_TIME"]"#, 0));
    let (names, unknown) = selected(
        "throughput units,Elapsed Time (sec)\n\nuuid,BOGUS FIGURE\r\nLSS_SIZE\nPROTOCOL\n",
    );
    assert_eq!(names, r#"["THROUGHPUT_UNITS", "ELAPSED_TIME", "UUID", "LSS_SIZE"]"#);
    assert_eq!(unknown, ["BOGUS FIGURE"]);
    std::fs::write(&path, "UUID,".repeat(20_000)).unwrap();
    let (stdout, stderr, exit_code) = said(&format!("-- -k {}", path.display()));
    assert_eq!((stdout.as_str(), exit_code), ("", 1));
    assert!(stderr.contains("is no selection: its first 4 lines have more than"), "{stderr}");
}

#[test]
fn unknown_selector_is_read_as_a_file_name() {
    for (letter, word, errno) in [("o", "missing.file", 2), ("k", "THROUGHPUTS", 2), ("O", "/", 21)]
    {
        let told = format!("Could not open output selection file '{word}' errno {errno}\n");
        assert_eq!(said(&format!("-- -{letter} {word}")), (told, String::new(), 255), "{word}");
    }
}

#[test]
fn a_block_without_figures_is_not_shown() {
    let shown = |rest: &str| printed(&format!("-P 0 -t TCP_STREAM -- {rest}"));
    let throughput = shown("-O THROUGHPUT");
    assert_eq!(throughput.lines().count(), 1);
    for list in ["THROUGHPUT;", "THROUGHPUT;;;", "THROUGHPUT;BOGUS,OTHER", ",THROUGHPUT,"] {
        assert_eq!(shown(&format!("-O {list}")), throughput, "{list}");
    }
    assert_eq!(shown("-O THROUGHPUT;;UUID"), shown("-O THROUGHPUT;UUID"));
    assert_eq!(shown("-O ;THROUGHPUT"), format!("\n{throughput}"));
    for nothing in ["-O BOGUS,", "-o BOGUS,", "-k BOGUS,", "-O ;", "-o ;"] {
        assert_eq!(shown(nothing), "", "{nothing}");
    }
    for list in ["THROUGHPUT;", "THROUGHPUT;BOGUS", ";THROUGHPUT"] {
        assert_eq!(shown(&format!("-o {list}")), shown("-o THROUGHPUT"), "{list}");
    }
}

#[test]
fn a_blank_column_may_stand_between_others() {
    let shown = |rest: &str| printed(&format!("-P 0 -t TCP_STREAM -- {rest}"));
    assert_eq!(shown("-O OUTPUT_NONE"), "   \n");
    assert_eq!(shown("-k OUTPUT_NONE"), "OUTPUT_NONE= \n");
    assert_eq!(shown("-o PROTOCOL,OUTPUT_NONE,DIRECTION"), "TCP, ,Send\n");
}
