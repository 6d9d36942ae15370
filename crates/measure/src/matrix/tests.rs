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

/// As long a list as a plan's text can hold is looked through once.
#[test]
fn long_axes_and_many_exclusions_are_refused_at_once() {
    let values = (0..400_000).map(|number| number.to_string()).collect();
    let axes = vec![Axis { name: "a".to_owned(), values }];
    let matrix = Matrix { axes, ..Matrix::default() };
    assert_eq!(matrix.iterations(), Err(MatrixError::TooMany));
    let values: Vec<String> = (0..ITERATIONS_MAX).map(|number| number.to_string()).collect();
    let rule: BTreeMap<String, Vec<String>> =
        [("a".to_owned(), values.iter().skip(1).cloned().collect())].into();
    let axes = vec![Axis { name: "a".to_owned(), values }];
    let matrix = Matrix { axes, exclude: vec![rule.clone(); 3], ..Matrix::default() };
    assert_eq!(matrix.iterations().map(|points| points.len()), Ok(1));
    let exclude = vec![exclude(&[("a", &["1"])]); EXCLUSIONS_MAX + 1];
    assert_eq!(Matrix { exclude, ..matrix }.iterations(), Err(MatrixError::TooManyExclusions));
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

mod property {
    use proptest::prelude::*;

    use super::*;

    /// The rules read anew: an odometer that turns place by place, and a point kept as a map.
    fn expected(matrix: &Matrix) -> Vec<BTreeMap<String, String>> {
        let leader = |name: &str| {
            let group = matrix.zip.iter().find(|group| group.iter().any(|one| one == name));
            let of_group =
                |axis: &&Axis| group.map_or(axis.name == name, |group| group.contains(&axis.name));
            matrix.axes.iter().find(of_group).unwrap().name.clone()
        };
        let leaders: Vec<&Axis> =
            matrix.axes.iter().filter(|axis| leader(&axis.name) == axis.name).collect();
        let mut digits = vec![0; leaders.len()];
        let mut points = Vec::new();
        loop {
            let digit = |name: &str| {
                let place = leaders.iter().position(|axis| axis.name == leader(name)).unwrap();
                digits[place]
            };
            let point: BTreeMap<String, String> = matrix
                .axes
                .iter()
                .map(|axis| (axis.name.clone(), axis.values[digit(&axis.name)].clone()))
                .collect();
            let gone = matrix.exclude.iter().any(|rule| {
                rule.iter().filter(|(name, values)| values.contains(&point[*name])).count()
                    == rule.len()
            });
            if !gone {
                points.push(point);
            }
            // Turns the last wheel, and the one before where that came round.
            let mut place = leaders.len();
            loop {
                let Some(next) = place.checked_sub(1) else { return points };
                place = next;
                digits[place] += 1;
                if digits[place] < leaders[place].values.len() {
                    break;
                }
                digits[place] = 0;
            }
        }
    }

    fn matrices() -> impl Strategy<Value = Matrix> {
        let lengths = prop::collection::vec(1_usize..5, 0..6);
        (lengths, any::<u64>(), 0_usize..3).prop_map(|(mut lengths, seed, rules)| {
            let mut state = seed;
            let mut draw =
                |below: usize| (crate::random::next_word(&mut state) % below as u64) as usize;
            // Axes 0 and 2, 1 and 4 step together where they exist.
            let mut zip = Vec::new();
            for (one, other) in [(0, 2), (1, 4)] {
                if other < lengths.len() && draw(2) == 0 {
                    lengths[other] = lengths[one];
                    zip.push(vec![format!("axis{other}"), format!("axis{one}")]);
                }
            }
            let axes: Vec<Axis> = lengths
                .iter()
                .enumerate()
                .map(|(place, length)| Axis {
                    name: format!("axis{place}"),
                    values: (0..*length).map(|value| format!("v{value}")).collect(),
                })
                .collect();
            let mut exclude = Vec::new();
            for _ in 0..rules {
                let mut rule = BTreeMap::new();
                for axis in &axes {
                    if draw(2) == 0 {
                        rule.insert(
                            axis.name.clone(),
                            vec![axis.values[draw(axis.values.len())].clone()],
                        );
                    }
                }
                if !rule.is_empty() {
                    exclude.push(rule);
                }
            }
            Matrix { axes, zip, exclude }
        })
    }

    proptest! {
        #[test]
        fn points_are_those_of_an_independent_reading(matrix in matrices()) {
            let expected = expected(&matrix);
            match matrix.iterations() {
                Err(error) => {
                    prop_assert_eq!(error, MatrixError::NothingLeft);
                    prop_assert!(expected.is_empty());
                }
                Ok(points) => {
                    for point in &points {
                        let names: Vec<&String> = point.settings.iter().map(|one| &one.name).collect();
                        let axes: Vec<&String> = matrix.axes.iter().map(|axis| &axis.name).collect();
                        prop_assert_eq!(names, axes);
                    }
                    let maps: Vec<BTreeMap<String, String>> = points
                        .iter()
                        .map(|point| {
                            point.settings.iter().map(|one| (one.name.clone(), one.value.clone())).collect()
                        })
                        .collect();
                    prop_assert_eq!(maps, expected);
                }
            }
        }
    }
}
