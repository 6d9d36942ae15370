//! What the fuzz targets do with their bytes, one function each. The crates' ordinary tests
//! include these files too, to replay `seeds/` on a stable compiler.

#[path = "../../crates/linerate/src/personality/colon_options.rs"]
pub mod colon_options;
pub mod command_line;
pub mod measure;
pub mod perf;
pub mod wire;
