use super::*;

fn axis(name: &str, values: &[&str]) -> Axis {
    Axis { name: name.to_owned(), values: values.iter().map(|value| (*value).to_owned()).collect() }
}

fn names(points: &[Iteration]) -> Vec<String> {
    let name = |point: &Iteration| {
        point.settings.iter().map(|one| one.value.as_str()).collect::<Vec<_>>().join("")
    };
    points.iter().map(name).collect()
}

fn exclude(rules: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    rules.iter().map(|(name, list)| ((*name).to_owned(), values(list))).collect()
}

#[test]
fn axes_are_crossed_and_the_last_varies_fastest() {
    let axes = vec![axis("a", &["1", "2"]), axis("b", &["x"]), axis("c", &["p", "q", "r"])];
    let matrix = Matrix { axes, ..Matrix::default() };
    let expected = ["1xp", "1xq", "1xr", "2xp", "2xq", "2xr"];
    assert_eq!(names(&matrix.iterations().unwrap()), expected);
}

#[test]
fn a_zip_group_steps_together_at_the_place_of_its_first_axis() {
    let axes = vec![axis("a", &["1", "2"]), axis("b", &["x", "y"]), axis("c", &["p", "q"])];
    let zip = vec![vec!["c".to_owned(), "a".to_owned()]];
    let matrix = Matrix { axes, zip, exclude: Vec::new() };
    assert_eq!(names(&matrix.iterations().unwrap()), ["1xp", "1yp", "2xq", "2yq"]);
}

#[test]
fn excluded_points_are_left_out() {
    let axes = vec![axis("a", &["1", "2"]), axis("b", &["x", "y", "z"])];
    let rules = vec![exclude(&[("a", &["1"]), ("b", &["x", "z"])]), exclude(&[("b", &["y"])])];
    let matrix = Matrix { axes, exclude: rules, zip: Vec::new() };
    assert_eq!(names(&matrix.iterations().unwrap()), ["2x", "2z"]);
}

#[test]
fn a_matrix_without_axes_has_one_point() {
    assert_eq!(Matrix::default().iterations().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_combined_is_named() {
    let two = || vec![axis("a", &["1", "2"]), axis("b", &["x"])];
    let group = |names: &[&str]| vec![names.iter().map(|name| (*name).to_owned()).collect()];
    let many: Vec<String> = (0..400).map(|value| value.to_string()).collect();
    let long = |name: &str| Axis { name: name.to_owned(), values: many.clone() };
    for (axes, zip, rules, text) in [
        (vec![axis("a", &[])], vec![], vec![], "a has no value"),
        (vec![axis("a", &["1"]), axis("a", &["2"])], vec![], vec![], "a is given twice"),
        (vec![axis("a", &["1", "2", "1"])], vec![], vec![], "a has the value 1 twice"),
        (two(), group(&["a", "b"]), vec![], "zip: a has 2 values and b has 1"),
        (two(), group(&["a", "c"]), vec![], "zip names c, which is no axis here: a, b"),
        (two(), group(&["a", "a"]), vec![], "zip has a twice"),
        (two(), vec![], vec![exclude(&[("c", &["1"])])], "exclude names c"),
        (two(), vec![], vec![exclude(&[("a", &["3"])])], "exclude: a never has the value 3"),
        (two(), vec![], vec![exclude(&[])], "exclude has a rule without an axis"),
        (two(), vec![], vec![exclude(&[("b", &["x"])])], "exclude leaves no cell"),
        (vec![long("a"), long("b")], vec![], vec![], "the axes have more than 100000 points"),
    ] {
        let error = Matrix { axes, zip, exclude: rules }.iterations().unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }
}
