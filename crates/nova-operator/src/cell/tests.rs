//! The judgement, case by case.
