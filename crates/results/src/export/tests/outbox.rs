//! Parts of runs that wait for a server.

use super::*;

#[test]
fn the_outbox_brings_each_part_once() {
    let directory = tempfile::tempdir().unwrap();
    let (writer, run, name) = writer(&directory);
    end_cells(&writer, run, 0..1);
    let target = "http://index";
    writer.index_to(run, target, None).unwrap();
    writer.index_to(run, target, None).unwrap();
    let store = Store::open(&directory.path().join("s.db")).unwrap();
    let positions = |store: &Store| -> Vec<Option<u32>> {
        parts(store).unwrap().iter().map(|part| part.position).collect()
    };
    assert_eq!(positions(&store), [None, Some(0)]);
    let stand_in = StandIn::default();
    let mut index = open(&stand_in);
    assert_eq!(waiting_of(&store, run).unwrap(), [(target.to_owned(), 2)]);
    assert_eq!(deliver(&store, &mut index, "http://another").unwrap().parts, 0);
    assert_eq!(deliver(&store, &mut index, target).unwrap().parts, 2);
    assert_eq!(positions(&store), []);
    assert_eq!(waiting_of(&store, run).unwrap(), []);
    let samples = |stand_in: &StandIn| {
        let documents = stand_in.documents().into_iter();
        documents.filter(|((name, _), _)| name.contains("-sample@")).count()
    };
    assert_eq!(samples(&stand_in), 1);
    // The index is away for two cells.
    end_cells(&writer, run, 1..3);
    stand_in
        .fail("/_bulk", usize::MAX, |_| Some(Err(SendError::Away("connection refused".into()))));
    let error = deliver(&store, &mut index, target).unwrap_err();
    assert_eq!(error, IndexError::Away("connection refused".into()));
    let left = parts(&store).unwrap();
    assert_eq!((left.len(), left[0].tries, left[0].run == name), (2, 1, true));
    assert!(left[0].reason.contains("connection refused"), "{left:?}");
    // The controller dies, and another goes on.
    drop((writer, store, index));
    let writer = Writer::open(&directory.path().join("s.db")).unwrap();
    writer.resume_run(&name, "abc").unwrap();
    writer.index_to(run, target, None).unwrap();
    end_cells(&writer, run, 3..4);
    end_run(&writer, run);
    writer.close().unwrap();
    stand_in.fail("/_bulk", 0, |_| None);
    let store = Store::open(&directory.path().join("s.db")).unwrap();
    assert_eq!(positions(&store), [Some(1), Some(2), Some(3), None]);
    deliver(&store, &mut open(&stand_in), target).unwrap();
    assert_eq!(positions(&store), []);
    // What came part by part is what an export writes.
    let exported = StandIn::default();
    write_run(&store, &mut open(&exported), run, &Form::default()).unwrap();
    assert_eq!(stand_in.documents(), exported.documents());
}

#[test]
fn a_part_that_an_index_refuses_is_kept_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let (writer, run, _) = writer(&directory);
    writer.index_to(run, "http://index", None).unwrap();
    end_cells(&writer, run, 0..2);
    writer.close().unwrap();
    let store = Store::open(&directory.path().join("s.db")).unwrap();
    let stand_in = StandIn::default();
    let mut index = open(&stand_in);
    // The mapping of another writer lacks a field.
    stand_in.refuse("\"csid\":\"2\"", "strict_dynamic_mapping_exception");
    let delivered = deliver(&store, &mut index, "http://index").unwrap();
    assert_eq!((delivered.parts, delivered.refused), (1, 2));
    let kept = parts(&store).unwrap();
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|part| part.state == "refused"), "{kept:?}");
    assert!(kept[0].reason.contains("1 documents; the first: cdm-v10dev-metric_desc@2023.11"));
    assert!(kept[0].reason.contains("strict_dynamic_mapping_exception"), "{kept:?}");
    assert_eq!(deliver(&store, &mut index, "http://index").unwrap().parts, 0, "not tried again");
    stand_in.refuse("nothing that is in a document", "");
    retry_refused(&store, "http://index").unwrap();
    assert_eq!(deliver(&store, &mut index, "http://index").unwrap().parts, 2);
    assert_eq!(parts(&store).unwrap(), []);
}

#[test]
fn a_change_during_a_try_is_not_lost_where_two_send() {
    let directory = tempfile::tempdir().unwrap();
    let (writer, run, _) = writer(&directory);
    writer.index_to(run, "http://index", None).unwrap();
    let path = directory.path().join("s.db");
    let store = Store::open(&path).unwrap();
    let change = || -> (i64, i64) {
        let sql = "SELECT id, change FROM outbox";
        store.connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    let first = change();
    deliver(&store, &mut open(&StandIn::default()), "http://index").unwrap();
    assert_eq!(parts(&store).unwrap(), []);
    end_run(&writer, run);
    let second = change();
    assert_eq!(first.0, second.0, "the number comes again");
    assert_ne!(first.1, second.1);
}

#[test]
fn a_part_that_fails_does_not_hold_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let (writer, bad, _) = writer(&directory);
    writer.index_to(bad, "http://index", None).unwrap();
    end_cells(&writer, bad, 0..2);
    let began_ms = T0 + 90 * 86_400_000;
    let (good, name) = writer.begin_run(NewRun { seed: Some(2), began_ms, ..new_run(1) }).unwrap();
    writer.index_to(good, "http://index", None).unwrap();
    writer.close().unwrap();
    let store = Store::open(&directory.path().join("s.db")).unwrap();
    let stand_in = StandIn::default();
    let guessed = json!({ "mappings": { "properties": {
        "run": { "properties": { "run-uuid": { "type": "text" } } } } } });
    stand_in.add_index("cdm-v10dev-run@2023.11", guessed);
    let mut index = open(&stand_in);
    let delivered = deliver(&store, &mut index, "http://index").unwrap();
    assert_eq!(delivered.parts, 1);
    assert!(matches!(delivered.failure, Some(IndexError::Unfit { .. })), "{delivered:?}");
    let left = parts(&store).unwrap();
    assert_eq!(left.len(), 3, "of the other run");
    assert!(left.iter().all(|part| part.state == "waiting" && part.run != name), "{left:?}");
    assert!(left[0].reason.contains("run.run-uuid"), "{left:?}");
    let version = |run: RunId| -> String {
        let sql = "SELECT version FROM export WHERE run = ?1";
        store.connection.query_row(sql, [run.0], |row| row.get(0)).unwrap()
    };
    assert_eq!((version(bad), version(good)), (String::new(), "v10dev".to_owned()));
    // One bulk that is refused as a whole.
    let other = StandIn::default();
    other.fail("/_bulk", 1, |_| Some(Ok(answer(400, "no"))));
    let delivered = deliver(&store, &mut open(&other), "http://index").unwrap();
    assert_eq!((delivered.parts, parts(&store).unwrap().len()), (2, 1));
    // Nobody who is not let in goes on.
    other.fail("/_bulk", usize::MAX, |_| Some(Ok(answer(403, "no"))));
    let error = deliver(&store, &mut open(&other), "http://index").unwrap_err();
    assert!(matches!(error, IndexError::Denied(_)), "{error}");
}

#[test]
fn each_run_has_its_own_version() {
    let directory = tempfile::tempdir().unwrap();
    let (writer, first, _) = writer(&directory);
    writer.index_to(first, "http://index", Some(CdmVersion::V8)).unwrap();
    let (second, _) = writer.begin_run(NewRun { seed: Some(2), ..new_run(1) }).unwrap();
    writer.index_to(second, "http://index", None).unwrap();
    let store = Store::open(&directory.path().join("s.db")).unwrap();
    let stand_in = StandIn::default();
    let mut index = open(&stand_in);
    deliver(&store, &mut index, "http://index").unwrap();
    assert_eq!(index.version(), CdmVersion::V10);
    let runs = |prefix: &str| {
        let documents = stand_in.documents();
        documents.keys().filter(|(name, _)| name.starts_with(prefix)).count()
    };
    assert_eq!((runs("cdmv8dev-run"), runs("cdm-v10dev-run@")), (1, 1));
    // The same version again, or none, changes nothing; another brings all of the run.
    writer.index_to(first, "http://index", Some(CdmVersion::V8)).unwrap();
    writer.index_to(first, "http://index", None).unwrap();
    assert_eq!(parts(&store).unwrap(), []);
    writer.index_to(first, "http://index", Some(CdmVersion::V9)).unwrap();
    assert_eq!(parts(&store).unwrap().len(), 1);
    deliver(&store, &mut index, "http://index").unwrap();
    assert_eq!(runs("cdm-v9dev-run@"), 1);
}
