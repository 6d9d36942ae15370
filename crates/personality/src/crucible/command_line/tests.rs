use super::*;

fn parse(line: &str) -> Result<Command, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse_command_line(&words)
}

#[test]
fn first_form_of_a_run_is_read() {
    let line = "run iperf --mv-params a.json --bench-ids iperf:1-4 --tags mtu:1500,dir:forward \
                --num-samples 3 --max-sample-failures 2 --test-order i \
                --endpoint remotehosts,user:me,host:10.0.0.1,client:1-4,userenv:rhubi9 \
                --endpoint netns,namespace:x,server:1-4,address:10.0.0.2";
    let Ok(Command::Run(options)) = parse(line) else { panic!("{:?}", parse(line)) };
    assert_eq!(options.operand.as_deref(), Some("iperf"));
    assert_eq!(options.bench_ids, [("iperf".to_owned(), vec![1, 2, 3, 4])]);
    assert_eq!(options.tags.len(), 2);
    assert_eq!(options.params.samples, Some(3));
    assert_eq!(options.params.order, Some(TestOrder::Iteration));
    assert_eq!(options.endpoints.len(), 2);
    assert_eq!(options.notes.len(), 1, "{:?}", options.notes);
}

#[test]
fn breakouts_are_taken_apart_outside_of_patterns() {
    let line = "get metric --source s --type t --run r --breakout cpu,num=1+2,x=r/a,b/,y";
    let Ok(Command::GetMetric(options)) = parse(line) else { panic!() };
    assert_eq!(options.breakouts, ["cpu", "num=1+2", "x=r/a,b/", "y"]);
}

#[test]
fn wrong_command_lines_are_refused() {
    let refused = [
        ("frob", "no command"),
        ("get", "result or metric"),
        ("get other", "not \"other\""),
        ("get result", "needs --run"),
        ("get metric --source s --type t", "--run or --period"),
        ("get metric --type t --run r", "--source"),
        ("get metric --source s --type t --run r --resolution 0", "--resolution"),
        ("get result --run r --output-format csv", "txt, json"),
        ("run", "needs a run file"),
        ("run a b", "\"b\""),
        ("run a --from-file b", "two run files"),
        ("run iperf --mv-params a", "--endpoint"),
        ("run iperf --endpoint k8s,host:h,client:1", "type kube"),
        ("run iperf --endpoint remotehost,client:1", "lacks the host"),
        ("run iperf --endpoint remotehost,host:h", "neither clients nor servers"),
        ("run iperf --endpoint remotehost,host:h,other:1", "no option of an endpoint"),
        ("run a --tags x", "NAME:VALUE"),
        ("run a --test-order x", "sample, iteration"),
        ("run a --unknown", "unrecognized"),
        ("multiplex x", "belongs to no option"),
    ];
    for (line, part) in refused {
        let why = parse(line).unwrap_err();
        assert!(why.contains(part), "{line}: {why}");
    }
}

#[test]
fn help_lists_every_quirk() {
    let help = render_help();
    for quirk in crate::crucible::quirk::QUIRKS {
        assert!(help.contains(quirk.label));
    }
}
