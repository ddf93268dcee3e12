//! Suggestions for a misspelt word among the known words.

use strsim::osa_distance;

/// Maximum number of suggestions.
const OFFERED: usize = 3;
/// Maximum length of a word to compare, longer than any option.
const LONGEST: usize = 80;

/// Returns the nearest words in alphabetical order, or none when no word is near.
pub fn nearest(word: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let word: String = word.to_lowercase().replace('-', "_").chars().take(LONGEST + 1).collect();
    let n_letters = word.chars().count();
    if n_letters > LONGEST {
        return vec![];
    }
    let mut least = limit(n_letters);
    let mut found: Vec<String> = Vec::new();
    for candidate in known {
        let other = candidate.to_lowercase();
        if other.chars().count().abs_diff(n_letters) > least {
            continue;
        }
        // Letters to add, remove, replace or swap with their neighbour.
        let distance = osa_distance(&word, &other);
        if distance < least {
            (least, found) = (distance, vec![]);
        }
        if distance == least {
            found.push(candidate);
        }
    }
    found.sort();
    found.dedup();
    found.truncate(OFFERED);
    found
}

/// Returns the maximum distance for a word of that length.
fn limit(n_letters: usize) -> usize {
    match n_letters {
        0..=3 => 1,
        4..=7 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, known: &[&str], expected: &[&str]) {
        assert_eq!(nearest(word, known.iter().map(ToString::to_string)), expected, "{word}");
    }

    #[test]
    fn one_letter_or_two_neighbours_make_no_other_word() {
        let known = ["cpu_mode", "cpu_models", "virt_type"];
        check("cpu_modles", &known, &["cpu_models"]);
        check("CPU-Models", &known, &["cpu_models"]);
        check("virttype", &known, &["virt_type"]);
        check("vrit_type", &known, &["virt_type"]);
        check("rng_dev_path", &known, &[]);
    }

    #[test]
    fn all_words_that_are_equally_near_are_offered() {
        check("cpu_modl", &["cpu_mode", "cpu_model"], &["cpu_mode", "cpu_model"]);
    }

    #[test]
    fn short_words_may_have_one_mistake() {
        check("kex", &["key", "abc"], &["key"]);
        check("kxx", &["key"], &[]);
    }

    #[test]
    fn a_word_of_any_length_is_answered() {
        check(&"x".repeat(1_000_000), &["key"], &[]);
        check("", &["key"], &[]);
    }
}
