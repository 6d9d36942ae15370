//! Selectors of machines, interfaces and drivers: the original keeps the names and fills them with a word.

use super::value::{UNKNOWN_DEVICE, deprecated, text};
use super::{Selector, row};

/// In the order of `all`.
pub(super) const MACHINE: &[Selector] = &[
    row("LOCAL_SYSNAME", "Local|Sysname", |_| deprecated()),
    row("LOCAL_SYSTEM_MODEL", "Local|System|Model", |_| deprecated()),
    row("LOCAL_RELEASE", "Local|Release", |_| deprecated()),
    row("LOCAL_VERSION", "Local|Version", |_| deprecated()),
    row("LOCAL_MACHINE", "Local|Machine", |_| deprecated()),
    row("REMOTE_SYSNAME", "Remote|Sysname", |_| deprecated()),
    row("REMOTE_SYSTEM_MODEL", "Remote|System|Model", |_| deprecated()),
    row("REMOTE_RELEASE", "Remote|Release", |_| deprecated()),
    row("REMOTE_VERSION", "Remote|Version", |_| deprecated()),
    row("REMOTE_MACHINE", "Remote|Machine", |_| deprecated()),
    row("LOCAL_INTERFACE_NAME", "Local|Interface|Name", |_| deprecated()),
    row("LOCAL_INTERFACE_VENDOR", "Local|Interface|Vendor", |_| text(UNKNOWN_DEVICE)),
    row("LOCAL_INTERFACE_DEVICE", "Local|Interface|Device", |_| text(UNKNOWN_DEVICE)),
    row("LOCAL_INTERFACE_SUBVENDOR", "Local|Interface|Subvendor", |_| text(UNKNOWN_DEVICE)),
    row("LOCAL_INTERFACE_SUBDEVICE", "Local|Interface|Subdevice", |_| text(UNKNOWN_DEVICE)),
    row("LOCAL_DRIVER_NAME", "Local|Driver|Name", |_| deprecated()),
    row("LOCAL_DRIVER_VERSION", "Local|Driver|Version", |_| deprecated()),
    row("LOCAL_DRIVER_FIRMWARE", "Local|Driver|Firmware", |_| deprecated()),
    row("LOCAL_DRIVER_BUS", "Local|Driver|Bus", |_| deprecated()),
    row("LOCAL_INTERFACE_SLOT", "Local|Interface|Slot", |_| deprecated()),
    row("REMOTE_INTERFACE_NAME", "Remote|Interface|Name", |_| deprecated()),
    row("REMOTE_INTERFACE_VENDOR", "Remote|Interface|Vendor", |_| text(UNKNOWN_DEVICE)),
    row("REMOTE_INTERFACE_DEVICE", "Remote|Interface|Device", |_| text(UNKNOWN_DEVICE)),
    row("REMOTE_INTERFACE_SUBVENDOR", "Remote|Interface|Subvendor", |_| text(UNKNOWN_DEVICE)),
    row("REMOTE_INTERFACE_SUBDEVICE", "Remote|Interface|Subdevice", |_| text(UNKNOWN_DEVICE)),
    row("REMOTE_DRIVER_NAME", "Remote|Driver|Name", |_| deprecated()),
    row("REMOTE_DRIVER_VERSION", "Remote|Driver|Version", |_| deprecated()),
    row("REMOTE_DRIVER_FIRMWARE", "Remote|Driver|Firmware", |_| deprecated()),
    row("REMOTE_DRIVER_BUS", "Remote|Driver|Bus", |_| deprecated()),
    row("REMOTE_INTERFACE_SLOT", "Remote|Interface|Slot", |_| deprecated()),
];
