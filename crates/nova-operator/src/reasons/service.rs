//! The reasons on services of type nova.

use api::conditions::Reason;

pub(crate) const KEYS_USED: Reason = Reason::good("KeysUsed", "Every key has its effect.");
pub(crate) const KEY_IGNORED: Reason = Reason::warning(
    "KeyIgnored",
    "nova-compute never reads a key: its name does not match `*nova*.conf`, or the play \
     writes a file of that name itself.",
    "When the key is renamed.",
    "Name the key as the message proposes, for example `25-nova-extra.conf`.",
);
pub(crate) const KEY_OVERRULED: Reason = Reason::warning(
    "KeyOverruled",
    "A key is read before the generated files, whose values win.",
    "When the key is renamed.",
    "Name the key as the message proposes, for example `25-nova-extra.conf`.",
);
