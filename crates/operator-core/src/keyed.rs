//! Digests of what Secrets hold: keyed per installation, and comparable with those of older keys and
//! of none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use api::conditions::Condition;
use hmac::{Hmac, Mac};
use serde::Serialize;
use sha2::Sha256;

use crate::hash;
use crate::plan::{EventDraft, Step, Target, Write, status_step};

/// The Secret with the installation's keys, in the operators' own namespace.
pub const SECRET: &str = "edpm-digest-key";

/// The reason of the Event that tells of a lost key.
pub const KEY_LOST: &str = "DigestKeyLost";

/// How many hexadecimal digits of what is no secret stand in a text.
const OPEN: usize = 10;
/// How many hexadecimal digits the id of a key has.
const ID: usize = 6;

/// The keys of an installation; its default has none, and digests are as they were before keys.
/// `Debug` shows the ids alone.
#[derive(Clone, Default)]
pub struct Keys(Option<Arc<Known>>);

#[derive(Clone)]
struct Known {
    /// The present one first.
    keys: Vec<Hmac<Sha256>>,
    keyring: Arc<Keyring>,
}

/// What is known of the keys without having them.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Keyring {
    /// Of the keys, the present one first.
    ids: Vec<String>,
    /// Whether texts without a key stay as they were recorded.
    keeps_unkeyed: bool,
}

impl Keys {
    /// The present key, by which digests are written, and those by which statuses may still hold some.
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

    /// The same, but what was recorded without a key is not renewed: a release that knows no keys can
    /// still compare it.
    #[must_use]
    pub fn keeping_unkeyed(self) -> Self {
        Self(self.0.map(|known| {
            let mut known = Arc::unwrap_or_clone(known);
            Arc::make_mut(&mut known.keyring).keeps_unkeyed = true;
            Arc::new(known)
        }))
    }

    /// The digest of what a Secret holds; `plain` is the one of a release that knew no keys.
    pub fn digest(&self, content: &[u8], plain: String) -> Digest {
        let Some(known) = &self.0 else { return plain.into() };
        let mut texts: Vec<String> = known.keys.iter().map(|it| mac(it, content)).collect();
        texts.push(plain);
        Digest {
            open: String::new(),
            secret: Some(Keyed { keyring: Arc::clone(&known.keyring), texts }),
        }
    }

    /// The digest of bytes that a Secret holds.
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

/// A digest of anything: of what a Secret holds it is known by each key, and by none.
///
/// Its text is `key:digest` for a single value of a Secret and `key:open:digest` for what was made from
/// more, where `open` is what is the same whatever the Secrets hold. Of what has nothing to do with
/// Secrets it is the plain digest. `Debug` shows the text.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Digest {
    /// Of everything but what Secrets hold; empty for a single value of a Secret.
    open: String,
    /// Of everything, where a Secret has a part in it.
    secret: Option<Keyed>,
}

#[derive(Clone, Eq, PartialEq)]
struct Keyed {
    keyring: Arc<Keyring>,
    /// By each key, then by none.
    texts: Vec<String>,
}

/// As whom a digest is seen while another one is made from it: by one of the keys, by none, or as
/// somebody who knows no Secret.
#[derive(Clone, Copy, Debug)]
pub struct View(Option<usize>);

impl View {
    /// The digest as it is seen.
    pub fn of(self, digest: &Digest) -> &str {
        let text = || digest.secret.as_ref()?.texts.get(self.0?);
        text().unwrap_or(&digest.open)
    }

    /// All of them as they are seen.
    pub fn all<K: Ord>(self, digests: &BTreeMap<K, Digest>) -> BTreeMap<&K, &str> {
        digests.iter().map(|(name, it)| (name, self.of(it))).collect()
    }
}

impl Digest {
    /// A digest that is made from others.
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

    /// A digest that is made from this one alone.
    #[must_use]
    pub fn map(&self, make: impl Fn(&str) -> String) -> Self {
        let mut derived = Self::combined([self], |view| make(view.of(self)));
        if self.is_single() {
            derived.open.clear();
        }
        derived
    }

    /// The same with only so many digits of each part: only good for comparisons with others that are
    /// cut like it.
    #[must_use]
    pub fn cut(&self, length: usize) -> Self {
        self.map(|it| cut(it, length))
    }

    /// What is written of it.
    pub fn text(&self) -> String {
        let Some(Keyed { keyring, texts }) = &self.secret else { return self.open.clone() };
        let (id, text) = (&keyring.ids[0], &texts[0]);
        if self.is_single() {
            format!("{id}:{text}")
        } else {
            format!("{id}:{}:{text}", self.seen())
        }
    }

    /// Whether a text was written of the same, by whichever key or by none.
    ///
    /// Of a text by a key that is lost nobody can tell what the Secrets held: it counts as the same
    /// where all else is.
    pub fn is(&self, text: &str) -> bool {
        let Some(Keyed { keyring, texts }) = &self.secret else { return self.open == text };
        let Some((id, open, digest)) = parts(text) else {
            return texts.last().is_some_and(|it| it == text);
        };
        let is_known = |it: usize| texts[it] == digest;
        open == self.seen() && keyring.ids.iter().position(|it| it == id).is_none_or(is_known)
    }

    /// Whether two texts were written of one thing, as far as that can be told.
    pub fn is_one(&self, text: &str, other: &str) -> bool {
        text == other || (self.is(text) && self.is(other))
    }

    /// Whether a text counts as written of the same although its key is lost.
    pub fn is_lost(&self, text: &str) -> bool {
        let Some(Keyed { keyring, .. }) = &self.secret else { return false };
        parts(text).is_some_and(|(id, ..)| !keyring.ids.iter().any(|it| it == id)) && self.is(text)
    }

    /// Whether a text was written of the same, and that can be told: a lost key hides every change.
    pub fn is_certainly(&self, text: &str) -> bool {
        self.is(text) && !self.is_lost(text)
    }

    /// Whether a text that was written of the same is to be written anew: it is by another key, or by
    /// none where such texts are not left as they are.
    pub fn renews(&self, text: &str) -> bool {
        let Some(Keyed { keyring, .. }) = &self.secret else { return false };
        let is_left = keyring.keeps_unkeyed && !is_keyed(text);
        !is_left && self.is(text) && text != self.text()
    }

    /// What was written where it was written of the same; else what is to be written.
    pub fn kept(&self, recorded: Option<&String>) -> String {
        recorded.filter(|it| self.is(it)).cloned().unwrap_or_else(|| self.text())
    }

    fn is_single(&self) -> bool {
        self.secret.is_some() && self.open.is_empty()
    }

    /// Of what is no secret, as much as is written.
    fn seen(&self) -> String {
        cut(&self.open, OPEN)
    }
}

/// The text of a digest with only so many digits of each part, as [`Digest::cut`] has it.
pub fn cut_text(text: &str, length: usize) -> String {
    let Some((id, rest)) = text.split_once(':') else { return cut(text, length) };
    let rest: Vec<String> = rest.split(':').map(|it| cut(it, length)).collect();
    format!("{id}:{}", rest.join(":"))
}

/// Whether a text is by some key, so that only who has that can compare it.
pub fn is_keyed(text: &str) -> bool {
    parts(text).is_some()
}

/// Key, what is no secret, and digest.
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

/// What is written of inputs.
pub fn texts(inputs: &Inputs) -> BTreeMap<String, String> {
    inputs.iter().map(|(name, it)| (name.clone(), it.text())).collect()
}

/// What is written of inputs, each as it was recorded where it is the same.
pub fn kept(recorded: &BTreeMap<String, String>, present: &Inputs) -> BTreeMap<String, String> {
    present.iter().map(|(name, it)| (name.clone(), it.kept(recorded.get(name)))).collect()
}

/// The digest of digests by name.
pub fn short<K: Ord + Serialize>(digests: &BTreeMap<K, Digest>) -> Digest {
    Digest::combined(digests.values(), |view| hash::short(&view.all(digests)))
}

/// The names of the inputs in which what was recorded differs from what is there.
pub fn changed(recorded: &BTreeMap<String, String>, present: &Inputs) -> Vec<String> {
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

/// Texts in a status that are written anew with the next write, and whether any of them needs one.
#[derive(Debug, Default)]
pub struct Renewal {
    /// The keys that are lost, by which something was written.
    lost: BTreeSet<String>,
}

impl Renewal {
    /// Writes a text by the present key, where it was written of the same.
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

    /// The same for a text that may be absent.
    pub fn of_some(&mut self, text: Option<&mut String>, digest: &Digest) {
        if let Some(text) = text {
            self.of(text, digest);
        }
    }

    /// The same for each input.
    pub fn of_inputs(&mut self, recorded: &mut BTreeMap<String, String>, present: &Inputs) {
        for (name, text) in recorded {
            if let Some(digest) = present.get(name) {
                self.of(text, digest);
            }
        }
    }

    /// The keys that are lost, by which something was written.
    pub fn lost(&self) -> Vec<&str> {
        self.lost.iter().map(String::as_str).collect()
    }

    /// The step that writes a status in which digests are renewed, where there is another reason to
    /// write it: `kept` is the same status with the digests as they were recorded.
    ///
    /// Digests by a lost key are a reason themselves: from then on changes are seen again. That is
    /// told once, with `way_on` for a human who knows of a change meanwhile.
    pub fn step<S: Serialize>(
        &self,
        target: Target,
        observed: Option<&S>,
        (kept, renewed): (&S, &S),
        (previous, next): (&[Condition], &[Condition]),
        way_on: &str,
    ) -> Option<Step> {
        let kept = status_step(target.clone(), observed, kept, previous, next);
        if kept.is_none() && self.lost.is_empty() {
            return None;
        }
        let mut step = status_step(target, observed, renewed, previous, next)?;
        if let Write::Status { notices, .. } = &mut step.write
            && !self.lost.is_empty()
        {
            notices.push(self.notice(&step.target, way_on));
        }
        Some(step)
    }

    fn notice(&self, target: &Target, way_on: &str) -> EventDraft {
        let note = format!(
            "The status of {} {} held digests of Secrets by the key {}, which is lost. Whether those \
             Secrets have changed since cannot be told, so they count as unchanged and nothing runs. \
             {way_on}",
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
