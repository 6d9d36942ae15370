//! The command line and the output against fixed results. `SNAPSHOTS=overwrite` writes the
//! snapshots anew; their shapes are those of netperf 2.7.1's own output.

mod addresses;
mod fixture;
mod omni;
mod options;
mod output;
mod selection;
mod values;
