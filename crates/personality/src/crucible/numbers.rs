//! Lists of engines' numbers: `3`, `"1-4+7"` or `[1, "3-5"]`.

use serde_json::Value;

/// The largest number of an engine: its two ports, from 30000 on, have to be ports.
pub const LARGEST_ID: u32 = 17_767;

/// The numbers of a list, in ascending order, each once.
///
/// # Errors
/// A sentence that names the place.
pub fn read_numbers(value: &Value, place: &str) -> Result<Vec<u32>, String> {
    let mut numbers = match value {
        Value::Number(number) => vec![one(&number.to_string(), place)?],
        Value::String(text) => parse_numbers(text, place)?,
        Value::Array(items) if !items.is_empty() => {
            let mut numbers = Vec::new();
            for item in items {
                match item {
                    Value::Number(number) => numbers.push(one(&number.to_string(), place)?),
                    Value::String(range) => numbers.extend(parse_range(range, place)?),
                    _ => return Err(wrong(&item.to_string(), place)),
                }
            }
            numbers
        }
        other => return Err(wrong(&other.to_string(), place)),
    };
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// The numbers of a text such as `1-4+7`.
///
/// # Errors
/// A sentence that names the place.
pub fn parse_numbers(text: &str, place: &str) -> Result<Vec<u32>, String> {
    let mut numbers = Vec::new();
    for range in text.split('+') {
        numbers.extend(parse_range(range, place)?);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn parse_range(range: &str, place: &str) -> Result<std::ops::RangeInclusive<u32>, String> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (one(first, place)?, one(last, place)?);
    if first > last {
        return Err(format!("{place} has the range {range:?}, which doesn't ascend"));
    }
    Ok(first..=last)
}

fn one(text: &str, place: &str) -> Result<u32, String> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let number = text.parse().ok().filter(|number| (1..=LARGEST_ID).contains(number));
    number.filter(|_| is_digits).ok_or_else(|| wrong(text, place))
}

fn wrong(text: &str, place: &str) -> String {
    format!(
        "{place} has {text}, and takes numbers from 1 to {LARGEST_ID}: 3, \"1-4+7\" or [1, \"3-5\"]"
    )
}

/// Numbers as the shortest list: `1-4+7`.
pub fn render_numbers(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let range = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_expanded_and_sorted() {
        let numbers = |value: Value| read_numbers(&value, "ids");
        assert_eq!(numbers(json!(3)), Ok(vec![3]));
        assert_eq!(numbers(json!("9-10+1-4+7")), Ok(vec![1, 2, 3, 4, 7, 9, 10]));
        assert_eq!(numbers(json!([5, "1-2", 1])), Ok(vec![1, 2, 5]));
        assert_eq!(render_numbers(&[1, 2, 3, 4, 7, 9, 10]), "1-4+7+9-10");
    }

    #[test]
    fn wrong_lists_are_refused() {
        let refused = [
            json!(0),
            json!(-1),
            json!(1.5),
            json!(""),
            json!("4-1"),
            json!("01"),
            json!("1,2"),
            json!("+1"),
            json!("1-2-3"),
            json!([]),
            json!(["1+2"]),
            json!([null]),
            json!(20000),
            json!("1-4000000000"),
        ];
        for value in refused {
            assert!(read_numbers(&value, "ids").is_err(), "{value}");
        }
    }
}
