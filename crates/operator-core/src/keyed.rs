//! Digests of Secret contents: keyed per installation, comparable with older and unkeyed ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, Mac};
use serde::Serialize;
use sha2::Sha256;

use crate::hash;
use crate::plan::{EventDraft, Step, Target, Write, status_step};

/// Name of the Secret with the installation's keys, in the operators' own namespace.
pub const SECRET: &str = "edpm-digest-key";

/// Reason of the Event that reports a lost key.
pub const KEY_LOST: &str = "DigestKeyLost";

/// How many hexadecimal digits of the open (non-secret) part a text contains.
const OPEN: usize = 10;
/// How many hexadecimal digits the id of a key has.
const ID: usize = 6;

/// The digest keys of an installation.
///
/// The default has no keys; digests are then plain, as in releases without keys.
/// `Debug` shows only the ids.
#[derive(Clone, Default)]
pub struct Keys(Option<Arc<Known>>);

#[derive(Clone)]
struct Known {
    /// The current key comes first.
    keys: Vec<Hmac<Sha256>>,
    keyring: Arc<Keyring>,
}

/// What is known about the keys without the keys themselves.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Keyring {
    /// The ids of the keys, the current one first.
    ids: Vec<String>,
    /// Whether texts without a key stay as they were recorded.
    keeps_unkeyed: bool,
}

impl Keys {
    /// Creates the keys of an installation.
    ///
    /// New digests are written with the `present` key; statuses may still hold digests by `former`
    /// keys.
    pub fn new<'a>(present: &'a [u8], former: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut keys, mut ids) = (Vec::new(), Vec::new());
        for key in [present].into_iter().chain(former) {
            let key = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
            let id = format!("k{}", cut(&mac(&key, b"id"), ID));
            if !ids.contains(&id) {
                keys.push(key);
                ids.push(id);
            }
        }
        Self(Some(Arc::new(Known {
            keys,
            keyring: Arc::new(Keyring { ids, keeps_unkeyed: false }),
        })))
    }

    /// Returns the same keys, but unkeyed texts in statuses are not renewed.
    ///
    /// A release without keys can then still compare them.
    #[must_use]
    pub fn keeping_unkeyed(self) -> Self {
        Self(self.0.map(|known| {
            let mut known = Arc::unwrap_or_clone(known);
            Arc::make_mut(&mut known.keyring).keeps_unkeyed = true;
            Arc::new(known)
        }))
    }

    /// Returns the digest of a Secret's content; `plain` is the unkeyed digest of an older release.
    pub fn digest(&self, content: &[u8], plain: String) -> Digest {
        let Some(known) = &self.0 else { return plain.into() };
        let mut texts: Vec<String> = known.keys.iter().map(|it| mac(it, content)).collect();
        texts.push(plain);
        Digest {
            open: String::new(),
            secret: Some(Keyed { keyring: Arc::clone(&known.keyring), texts }),
        }
    }

    /// Returns the digest of bytes from a Secret.
    pub fn of_bytes(&self, content: &[u8]) -> Digest {
        self.digest(content, hash::of_bytes(content))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.0.as_ref().map(|it| &it.keyring)).finish()
    }
}

fn mac(key: &Hmac<Sha256>, content: &[u8]) -> String {
    hash::hex(&key.clone().chain_update(content).finalize().into_bytes())
}

fn cut(digits: &str, length: usize) -> String {
    digits.chars().take(length).collect()
}

/// A digest of inputs. If a Secret is among the inputs, it is known by each key and without a key.
///
/// Its text has one of these forms; `Debug` shows the text.
/// - `key:digest` for a single value of a Secret.
/// - `key:open:digest` for inputs among which are Secrets; `open` does not depend on the Secrets.
/// - The plain digest for inputs without a Secret.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Digest {
    /// Digest of everything except Secret contents; empty for a single value of a Secret.
    open: String,
    /// Digest of everything, if a Secret is part of it.
    secret: Option<Keyed>,
}

#[derive(Clone, Eq, PartialEq)]
struct Keyed {
    keyring: Arc<Keyring>,
    /// One digest for each key, then the unkeyed one.
    texts: Vec<String>,
}

/// Which variant of a digest is read while another is made from it: by one of the keys, unkeyed, or
/// without the Secrets.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct View(Option<usize>);

impl View {
    /// Returns the digest's text in this view.
    pub fn of(self, digest: &Digest) -> &str {
        let text = || digest.secret.as_ref()?.texts.get(self.0?);
        text().unwrap_or(&digest.open)
    }

    /// Returns the texts of all digests in this view.
    pub fn all<K: Ord>(self, digests: &BTreeMap<K, Digest>) -> BTreeMap<&K, &str> {
        digests.iter().map(|(name, it)| (name, self.of(it))).collect()
    }
}

impl Digest {
    /// Returns the digest that `make` derives from `parts`; `make` is called once for each view.
    pub fn combined<'a>(
        parts: impl IntoIterator<Item = &'a Self>,
        make: impl Fn(View) -> String,
    ) -> Self {
        let keyring =
            parts.into_iter().find_map(|it| Some(Arc::clone(&it.secret.as_ref()?.keyring)));
        let secret = keyring.map(|keyring| {
            let texts = (0..=keyring.ids.len()).map(|it| make(View(Some(it)))).collect();
            Keyed { keyring, texts }
        });
        Self { open: make(View(None)), secret }
    }

    /// Returns the digest that `make` derives from this one alone.
    #[must_use]
    pub fn map(&self, make: impl Fn(&str) -> String) -> Self {
        let mut derived = Self::combined([self], |view| make(view.of(self)));
        if self.is_single() {
            derived.open.clear();
        }
        derived
    }

    /// Returns the digest with each part cut to `length` digits.
    ///
    /// The result compares only with digests that were cut to the same length.
    #[must_use]
    pub fn cut(&self, length: usize) -> Self {
        self.map(|it| cut(it, length))
    }

    /// Returns the text that is written to statuses.
    pub fn text(&self) -> String {
        let Some(Keyed { keyring, texts }) = &self.secret else { return self.open.clone() };
        let (id, text) = (&keyring.ids[0], &texts[0]);
        if self.is_single() {
            format!("{id}:{text}")
        } else {
            format!("{id}:{}:{text}", self.seen())
        }
    }

    /// Returns the digest without a key.
    pub fn unkeyed(&self) -> &str {
        self.secret.as_ref().and_then(|it| it.texts.last()).unwrap_or(&self.open)
    }

    /// Returns whether a text was written for the same inputs, with any key or with none.
    ///
    /// If the text's key is lost, the Secret contents cannot be compared: only the open part
    /// decides.
    pub fn is(&self, text: &str) -> bool {
        let Some(Keyed { keyring, texts }) = &self.secret else { return self.open == text };
        let Some((id, open, digest)) = parts(text) else {
            return texts.last().is_some_and(|it| it == text);
        };
        let is_known = |it: usize| texts[it] == digest;
        open == self.seen() && keyring.ids.iter().position(|it| it == id).is_none_or(is_known)
    }

    /// Returns whether two texts were written for the same inputs, as far as the known keys can
    /// tell.
    pub fn is_one(&self, text: &str, other: &str) -> bool {
        text == other || (self.is(text) && self.is(other))
    }

    /// Returns whether a text only counts as the same because its key is lost.
    pub fn is_lost(&self, text: &str) -> bool {
        let Some(Keyed { keyring, .. }) = &self.secret else { return false };
        parts(text).is_some_and(|(id, ..)| !keyring.ids.iter().any(|it| it == id)) && self.is(text)
    }

    /// Returns whether a text was written for the same inputs with a known key or none.
    ///
    /// A lost key hides every change of the Secrets.
    pub fn is_certainly(&self, text: &str) -> bool {
        self.is(text) && !self.is_lost(text)
    }

    /// Returns whether a text for the same inputs has to be rewritten.
    ///
    /// That is the case if it is by another key, or by none unless unkeyed texts are kept.
    pub fn renews(&self, text: &str) -> bool {
        let Some(Keyed { keyring, .. }) = &self.secret else { return false };
        let is_left = keyring.keeps_unkeyed && !is_keyed(text);
        !is_left && self.is(text) && text != self.text()
    }

    /// Returns the recorded text if it is for the same inputs, otherwise the text to write.
    pub fn kept(&self, recorded: Option<&String>) -> String {
        recorded.filter(|it| self.is(it)).cloned().unwrap_or_else(|| self.text())
    }

    fn is_single(&self) -> bool {
        self.secret.is_some() && self.open.is_empty()
    }

    /// Returns the open part, cut to its written length.
    fn seen(&self) -> String {
        cut(&self.open, OPEN)
    }
}

/// Cuts each part of a digest's text to `length` digits, as [`Digest::cut`] does.
pub fn cut_text(text: &str, length: usize) -> String {
    let Some((id, rest)) = text.split_once(':') else { return cut(text, length) };
    let rest: Vec<String> = rest.split(':').map(|it| cut(it, length)).collect();
    format!("{id}:{}", rest.join(":"))
}

/// Returns whether a text has a key, so that it can only be compared with that key.
pub fn is_keyed(text: &str) -> bool {
    parts(text).is_some()
}

/// Splits a text into key id, open part and digest.
fn parts(text: &str) -> Option<(&str, &str, &str)> {
    let (id, rest) = text.split_once(':')?;
    let (open, digest) = rest.split_once(':').unwrap_or(("", rest));
    Some((id, open, digest))
}

impl From<String> for Digest {
    fn from(open: String) -> Self {
        Self { open, secret: None }
    }
}

impl From<&str> for Digest {
    fn from(open: &str) -> Self {
        open.to_owned().into()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Input name → digest.
pub type Inputs = BTreeMap<String, Digest>;

/// Returns the texts of the inputs.
pub fn texts(inputs: &Inputs) -> BTreeMap<String, String> {
    inputs.iter().map(|(name, it)| (name.clone(), it.text())).collect()
}

/// Returns the texts of the inputs; each recorded text is kept if its input is the same.
pub fn kept(recorded: &BTreeMap<String, String>, present: &Inputs) -> BTreeMap<String, String> {
    present.iter().map(|(name, it)| (name.clone(), it.kept(recorded.get(name)))).collect()
}

/// Returns the digest of digests by name.
pub fn short<K: Ord + Serialize>(digests: &BTreeMap<K, Digest>) -> Digest {
    Digest::combined(digests.values(), |view| hash::short(&view.all(digests)))
}

/// Returns the sorted names of the inputs whose recorded text differs from the present one.
pub fn changed_inputs(recorded: &BTreeMap<String, String>, present: &Inputs) -> Vec<String> {
    let is_same = |name: &&String| match (recorded.get(*name), present.get(*name)) {
        (Some(text), Some(digest)) => digest.is(text),
        _ => false,
    };
    let mut changed: Vec<String> =
        recorded.keys().chain(present.keys()).filter(|it| !is_same(it)).cloned().collect();
    changed.sort();
    changed.dedup();
    changed
}

/// Rewrites the digests in a status, and collects the lost keys among those that were replaced.
#[derive(Debug, Default)]
pub struct Renewal {
    /// Ids of the lost keys by which replaced texts were written.
    lost: BTreeSet<String>,
}

impl Renewal {
    /// Rewrites a text with the current key, if it is for the same inputs.
    pub fn of(&mut self, text: &mut String, digest: &Digest) {
        if !digest.renews(text) {
            return;
        }
        if digest.is_lost(text)
            && let Some((id, ..)) = parts(text)
        {
            self.lost.insert(id.to_owned());
        }
        *text = digest.text();
    }

    /// Rewrites a text that may be absent.
    pub fn of_some(&mut self, text: Option<&mut String>, digest: &Digest) {
        if let Some(text) = text {
            self.of(text, digest);
        }
    }

    /// Rewrites the text of each input.
    pub fn of_inputs(&mut self, recorded: &mut BTreeMap<String, String>, present: &Inputs) {
        for (name, text) in recorded {
            if let Some(digest) = present.get(name) {
                self.of(text, digest);
            }
        }
    }

    /// Returns the ids of the lost keys by which replaced texts were written.
    pub fn lost(&self) -> Vec<&str> {
        self.lost.iter().map(String::as_str).collect()
    }

    /// Returns the step that writes a status with renewed digests; `None` when nothing else
    /// changed.
    ///
    /// `kept` is the same status with the digests as they were recorded.
    /// Digests by a lost key are a reason to write on their own, because changes are detected again
    /// afterwards. An Event reports that once, with `way_on` for a user who knows of a change
    /// meanwhile.
    pub fn step<S: Serialize + PartialEq>(
        &self,
        target: Target,
        observed: Option<&S>,
        (kept, renewed): (&S, &S),
        way_on: &str,
    ) -> Option<Step> {
        // Most statuses of a pass are as they were: comparing them costs less than writing both.
        if observed == Some(kept) && self.lost.is_empty() {
            return None;
        }
        let kept = status_step(target.clone(), observed, kept);
        if kept.is_none() && self.lost.is_empty() {
            return None;
        }
        let mut step = status_step(target, observed, renewed)?;
        if let Write::Status { notices, .. } = &mut step.write
            && !self.lost.is_empty()
        {
            notices.push(self.notice(&step.target, way_on));
        }
        Some(step)
    }

    fn notice(&self, target: &Target, way_on: &str) -> EventDraft {
        let note = format!(
            "The status of {} {} held digests of Secrets by the key {}, which is lost. Whether \
             those Secrets have changed since is unknown, so they count as unchanged and nothing \
             runs. {way_on}",
            target.kind.kind,
            target.name,
            self.lost().join(", ")
        );
        EventDraft { warning: true, reason: KEY_LOST.to_owned(), note }
    }
}

#[cfg(test)]
#[path = "keyed_tests.rs"]
mod tests;
