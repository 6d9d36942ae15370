//! Rows of the file of jitter.

use linerate_wire::ctstraffic::media::jitter::JitterRow;

/// The head of the file.
pub const CSV_HEAD: &str = "SequenceNumber,SenderQpc,SenderQpf,ReceiverQpc,ReceiverQpf,\
                            RelativeInFlightTimeMs,PrevToCurrentInFlightTimeJitter";

/// A frame's row. The sender's counter and frequency are as they were sent; the original writes both
/// times 65,536.
pub fn csv_row(row: &JitterRow) -> String {
    let stamps = &row.stamps;
    format!(
        "{},{},{},{},{},{:.3},{:.3}",
        row.sequence,
        stamps.sender_counter,
        stamps.sender_frequency,
        stamps.receiver_counter,
        stamps.receiver_frequency,
        row.relative_ms,
        row.change_ms
    )
}

#[cfg(test)]
mod tests {
    use linerate_wire::ctstraffic::media::jitter::{Jitter, Stamps};

    use super::*;

    #[test]
    fn rows_are_the_originals_but_for_its_factor() {
        let stamps = |sender_counter, receiver_counter| Stamps {
            sender_counter,
            sender_frequency: 10_000_000,
            receiver_counter,
            receiver_frequency: 10_000_000,
        };
        let mut jitter = Jitter::default();
        let first = jitter.record_completed(1, stamps(7_640_794_820, 7_640_805_735));
        assert_eq!(csv_row(&first), "1,7640794820,10000000,7640805735,10000000,0.000,0.000");
        let second = jitter.record_completed(2, stamps(7_641_196_828, 7_641_205_183));
        assert_eq!(csv_row(&second), "2,7641196828,10000000,7641205183,10000000,-0.256,0.256");
        // The original has 500773475319808 and 655360000000 there.
        assert_eq!(second.stamps.sender_counter * 65_536, 500_773_475_319_808);
        let dropped = JitterRow { sequence: 3, ..JitterRow::default() };
        assert_eq!(csv_row(&dropped), "3,0,0,0,0,0.000,0.000");
    }
}
