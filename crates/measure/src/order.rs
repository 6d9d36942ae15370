//! The order in which cells are executed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::matrix::Cell;
use crate::random::next_word;

/// An order of cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Randomised complete blocks: each round has every iteration once, shuffled by the seed. A drift of the machine
    /// falls on all iterations alike, and a run that is cut off loses whole rounds.
    #[default]
    Interleaved,
    /// All samples of an iteration, then those of the next.
    Sample,
    /// The first sample of every iteration, then the second of every one.
    Iteration,
    /// Again and again an iteration drawn from those that have samples left, and its next sample.
    Random,
}

impl Order {
    /// All orders.
    pub const ALL: [Self; 4] = [Self::Interleaved, Self::Sample, Self::Iteration, Self::Random];

    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interleaved => "interleaved",
            Self::Sample => "sample",
            Self::Iteration => "iteration",
            Self::Random => "random",
        }
    }

    /// The order of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }

    /// Whether the seed matters.
    pub fn is_random(self) -> bool {
        matches!(self, Self::Interleaved | Self::Random)
    }

    /// Every cell of so many iterations with so many samples each, once. The same arguments give the same order.
    pub fn cells(self, iterations: u32, samples: u32, seed: u64) -> Vec<Cell> {
        let mut state = seed;
        let round = |sample: u32| (0..iterations).map(move |iteration| Cell { iteration, sample });
        match self {
            Self::Sample => (0..iterations)
                .flat_map(|iteration| (0..samples).map(move |sample| Cell { iteration, sample }))
                .collect(),
            Self::Iteration => (0..samples).flat_map(round).collect(),
            Self::Random => draw_all(iterations, samples, &mut state),
            Self::Interleaved => {
                let mut all = Vec::new();
                for sample in 0..samples {
                    let mut cells: Vec<Cell> = round(sample).collect();
                    shuffle(&mut cells, &mut state);
                    all.append(&mut cells);
                }
                all
            }
        }
    }
}

/// Every cell, its iteration drawn from those that have samples left.
fn draw_all(iterations: u32, samples: u32, state: &mut u64) -> Vec<Cell> {
    let mut left: Vec<Cell> = match samples {
        0 => Vec::new(),
        _ => (0..iterations).map(|iteration| Cell { iteration, sample: 0 }).collect(),
    };
    let mut all = Vec::new();
    while !left.is_empty() {
        let place = draw(left.len(), state);
        let Some(next) = left.get_mut(place) else { break };
        all.push(*next);
        next.sample += 1;
        if next.sample == samples {
            left.remove(place);
        }
    }
    all
}

/// Fisher and Yates' shuffle.
fn shuffle<T>(items: &mut [T], state: &mut u64) {
    for last in (1..items.len()).rev() {
        items.swap(last, draw(last + 1, state));
    }
}

/// A number below `choices`, which is not 0, without bias: what lies beyond the last multiple is drawn again.
fn draw(choices: usize, state: &mut u64) -> usize {
    let choices = choices as u64;
    let limit = u64::MAX - u64::MAX % choices;
    loop {
        let word = next_word(state);
        if word < limit {
            return (word % choices) as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(order: Order, seed: u64) -> String {
        let cells = order.cells(3, 2, seed);
        let name =
            |cell: &Cell| format!("{}{}", ["a", "b", "c"][cell.iteration as usize], cell.sample);
        cells.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn fixed_orders_are_those_of_their_names() {
        assert_eq!(letters(Order::Sample, 1), "a0 a1 b0 b1 c0 c1");
        assert_eq!(letters(Order::Iteration, 1), "a0 b0 c0 a1 b1 c1");
    }

    #[test]
    fn every_order_has_every_cell_once_and_repeats_by_seed() {
        for order in Order::ALL {
            for (iterations, samples) in [(0, 3), (1, 1), (1, 5), (7, 1), (13, 4)] {
                for seed in 0..20 {
                    let cells = order.cells(iterations, samples, seed);
                    assert_eq!(cells, order.cells(iterations, samples, seed));
                    let mut sorted = cells.clone();
                    sorted.sort_unstable();
                    assert_eq!(sorted, Order::Sample.cells(iterations, samples, 0));
                    if order == Order::Interleaved && iterations > 0 {
                        for (sample, round) in cells.chunks(iterations as usize).enumerate() {
                            assert!(round.iter().all(|cell| cell.sample as usize == sample));
                        }
                    }
                }
            }
            assert_eq!(Order::of_name(order.name()), Some(order));
        }
    }

    #[test]
    fn every_place_of_a_round_is_equally_likely() {
        let mut firsts = [0_u32; 4];
        for seed in 0..4000 {
            firsts[Order::Interleaved.cells(4, 1, seed)[0].iteration as usize] += 1;
        }
        // 1000 expected, standard deviation 27.
        assert!(firsts.iter().all(|count| (850..1150).contains(count)), "{firsts:?}");
    }
}
