//! Selectors of machines, interfaces and drivers: the original keeps the names and fills them with a word.

use super::value::{UNKNOWN_DEVICE, deprecated, text};
use super::{EndRow, Rows, of_end};

/// In the order of `all`.
pub(super) const MACHINE: &[Rows] = &[Rows::Ends(SYSTEM), Rows::Ends(DEVICE)];

const SYSTEM: &[EndRow] = &[
    of_end("SYSNAME", "Sysname", |_| deprecated()),
    of_end("SYSTEM_MODEL", "System|Model", |_| deprecated()),
    of_end("RELEASE", "Release", |_| deprecated()),
    of_end("VERSION", "Version", |_| deprecated()),
    of_end("MACHINE", "Machine", |_| deprecated()),
];

const DEVICE: &[EndRow] = &[
    of_end("INTERFACE_NAME", "Interface|Name", |_| deprecated()),
    of_end("INTERFACE_VENDOR", "Interface|Vendor", |_| text(UNKNOWN_DEVICE)),
    of_end("INTERFACE_DEVICE", "Interface|Device", |_| text(UNKNOWN_DEVICE)),
    of_end("INTERFACE_SUBVENDOR", "Interface|Subvendor", |_| text(UNKNOWN_DEVICE)),
    of_end("INTERFACE_SUBDEVICE", "Interface|Subdevice", |_| text(UNKNOWN_DEVICE)),
    of_end("DRIVER_NAME", "Driver|Name", |_| deprecated()),
    of_end("DRIVER_VERSION", "Driver|Version", |_| deprecated()),
    of_end("DRIVER_FIRMWARE", "Driver|Firmware", |_| deprecated()),
    of_end("DRIVER_BUS", "Driver|Bus", |_| deprecated()),
    of_end("INTERFACE_SLOT", "Interface|Slot", |_| deprecated()),
];
