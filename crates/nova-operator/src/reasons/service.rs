//! The reasons on services of type nova.

api::reasons! {
    pub(crate) mod catalog;

    /// Whether the keys of the data sources have an effect.
    const KEYS;

    KEYS_USED: good "KeysUsed" means "Every key has its effect.";
    KEY_IGNORED: warning "KeyIgnored"
        means "nova-compute never reads a key: its name does not match `*nova*.conf`, or the play \
            writes a file of that name itself."
        heals "When the key is renamed."
        step "Name the key as the message proposes, for example `25-nova-extra.conf`.";
    KEY_OVERRULED: warning "KeyOverruled"
        means "A key is read before the generated files, whose values win."
        heals "When the key is renamed."
        step "Name the key as the message proposes, for example `25-nova-extra.conf`.";
}
