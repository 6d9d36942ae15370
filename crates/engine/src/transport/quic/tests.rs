//! Two endpoints over loopback, in one thread.

use super::*;
