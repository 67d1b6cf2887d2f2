//! Scores of a classification: what a mistake costs, precision and recall.

use toolgate_catalog::Class;

/// One tool, as it was labelled and as it was classified.
pub(crate) struct Verdict {
    pub(crate) tool: String,
    pub(crate) labelled: Class,
    pub(crate) found: Class,
    pub(crate) confidence: f64,
}

impl Verdict {
    pub(crate) fn is_right(&self) -> bool {
        self.labelled == self.found
    }

    /// A destructive or financial tool that is called harmless costs ten ordinary errors.
    pub(crate) fn cost(&self) -> usize {
        let critical = matches!(self.labelled, Class::Destructive | Class::Financial);
        let harmless = matches!(self.found, Class::Read | Class::Other);
        match self.is_right() {
            true => 0,
            false if critical && harmless => 10,
            false => 1,
        }
    }
}

/// Prints what is right per class, and the mistakes if `shows_mistakes`. Returns how many are right and
/// what the mistakes cost.
pub(crate) fn print(name: &str, verdicts: &[Verdict], shows_mistakes: bool) -> (usize, usize) {
    let right = verdicts.iter().filter(|verdict| verdict.is_right()).count();
    let cost = verdicts.iter().map(Verdict::cost).sum();
    let share = ratio(right, verdicts.len());
    println!("{name}: {right} of {} right, {share:.3}, cost {cost}", verdicts.len());
    for class in Class::ALL {
        let found = verdicts.iter().filter(|verdict| verdict.found == class).count();
        let labelled = verdicts.iter().filter(|verdict| verdict.labelled == class).count();
        let both = verdicts.iter().filter(|verdict| verdict.found == class && verdict.is_right());
        let both = both.count();
        println!(
            "  {:<12} precision {:.3} ({both} of {found}), recall {:.3} ({both} of {labelled})",
            class.as_str(),
            ratio(both, found),
            ratio(both, labelled)
        );
    }
    for verdict in verdicts.iter().filter(|verdict| shows_mistakes && !verdict.is_right()) {
        println!(
            "  {}: {}, labelled {} ({:.2})",
            verdict.tool,
            verdict.found.as_str(),
            verdict.labelled.as_str(),
            verdict.confidence
        );
    }
    (right, cost)
}

#[expect(clippy::cast_precision_loss, reason = "hundreds")]
pub(crate) fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
