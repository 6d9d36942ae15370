//! What the fuzz targets do with their bytes, one function each. The crates' ordinary tests
//! include these files too, to replay `seeds/` on a stable compiler.

pub mod collected;
pub mod command_line;
pub mod crucible;
pub mod ctstraffic;
pub mod iperf3;
pub mod kubeconfig;
pub mod lab;
pub mod life;
pub mod measure;
pub mod netperf;
pub mod perf;
pub mod plans;
pub mod results;
pub mod wire;
