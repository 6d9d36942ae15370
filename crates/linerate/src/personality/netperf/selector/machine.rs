//! Selectors of machines, interfaces and drivers: the original keeps the names and fills them with a word.

use super::value::{UNKNOWN_DEVICE, deprecated, text};
use super::{Selector, row};

/// In the order of `all`.
pub(super) const MACHINE: &[Selector] = &[
    row("LOCAL_SYSNAME", "Local|Sysname", |o| deprecated()),
    row("LOCAL_SYSTEM_MODEL", "Local|System|Model", |o| deprecated()),
    row("LOCAL_RELEASE", "Local|Release", |o| deprecated()),
    row("LOCAL_VERSION", "Local|Version", |o| deprecated()),
    row("LOCAL_MACHINE", "Local|Machine", |o| deprecated()),
    row("REMOTE_SYSNAME", "Remote|Sysname", |o| deprecated()),
    row("REMOTE_SYSTEM_MODEL", "Remote|System|Model", |o| deprecated()),
    row("REMOTE_RELEASE", "Remote|Release", |o| deprecated()),
    row("REMOTE_VERSION", "Remote|Version", |o| deprecated()),
    row("REMOTE_MACHINE", "Remote|Machine", |o| deprecated()),
    row("LOCAL_INTERFACE_NAME", "Local|Interface|Name", |o| deprecated()),
    row("LOCAL_INTERFACE_VENDOR", "Local|Interface|Vendor", |o| text(UNKNOWN_DEVICE)),
    row("LOCAL_INTERFACE_DEVICE", "Local|Interface|Device", |o| text(UNKNOWN_DEVICE)),
    row("LOCAL_INTERFACE_SUBVENDOR", "Local|Interface|Subvendor", |o| text(UNKNOWN_DEVICE)),
    row("LOCAL_INTERFACE_SUBDEVICE", "Local|Interface|Subdevice", |o| text(UNKNOWN_DEVICE)),
    row("LOCAL_DRIVER_NAME", "Local|Driver|Name", |o| deprecated()),
    row("LOCAL_DRIVER_VERSION", "Local|Driver|Version", |o| deprecated()),
    row("LOCAL_DRIVER_FIRMWARE", "Local|Driver|Firmware", |o| deprecated()),
    row("LOCAL_DRIVER_BUS", "Local|Driver|Bus", |o| deprecated()),
    row("LOCAL_INTERFACE_SLOT", "Local|Interface|Slot", |o| deprecated()),
    row("REMOTE_INTERFACE_NAME", "Remote|Interface|Name", |o| deprecated()),
    row("REMOTE_INTERFACE_VENDOR", "Remote|Interface|Vendor", |o| text(UNKNOWN_DEVICE)),
    row("REMOTE_INTERFACE_DEVICE", "Remote|Interface|Device", |o| text(UNKNOWN_DEVICE)),
    row("REMOTE_INTERFACE_SUBVENDOR", "Remote|Interface|Subvendor", |o| text(UNKNOWN_DEVICE)),
    row("REMOTE_INTERFACE_SUBDEVICE", "Remote|Interface|Subdevice", |o| text(UNKNOWN_DEVICE)),
    row("REMOTE_DRIVER_NAME", "Remote|Driver|Name", |o| deprecated()),
    row("REMOTE_DRIVER_VERSION", "Remote|Driver|Version", |o| deprecated()),
    row("REMOTE_DRIVER_FIRMWARE", "Remote|Driver|Firmware", |o| deprecated()),
    row("REMOTE_DRIVER_BUS", "Remote|Driver|Bus", |o| deprecated()),
    row("REMOTE_INTERFACE_SLOT", "Remote|Interface|Slot", |o| deprecated()),
];
