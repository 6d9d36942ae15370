//! What the columns of status mean.

/// What stands above the rows of TCP, on the console and in text files.
pub const TCP: &str = "Legend:
* TimeSlice - (seconds) since the start
* Send & Recv Rates - bytes/sec in the time of the row
* In-Flight - connections that transfer data now
* Completed - connections completed so far
* Network Errors - connections failed by an error of the network so far
* Data Errors - connections failed by wrong, missing or extra data so far

";

/// What stands above the rows of UDP.
pub const UDP: &str = "Legend:
* TimeSlice - (seconds) since the start
* Streams - streams that run now
* Bits/Sec - bits/sec in the time of the row
* Completed Frames - frames of which all came, in the time of the row
* Dropped Frames - frames of which less or nothing came, in the time of the row
* Repeated Frames - frames of which more came than they have, in the time of the row
* Stream Errors - datagrams that were late, malformed or wrong, in the time of the row

";
