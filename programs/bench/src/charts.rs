//! Charts as self-contained SVG: bars of ratios, and lines of time against work with both axes logarithmic.

use crate::document::{Curve, Metric, Table};
use crate::table::short;
use std::fmt::Write;

/// Colours that can be told apart without distinguishing red from green (Okabe and Ito, "Color Universal Design").
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5c00", "#555555"];

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

struct Svg(String);

impl Svg {
    fn new(width: u32, height: u32, title: &str) -> Svg {
        let mut svg = Svg(String::new());
        svg.push(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        ));
        svg.push(format!("<title>{}</title>\n", escape(title)));
        svg.text(16.0, 22.0, "start", title);
        svg
    }

    fn push(&mut self, text: String) {
        self.0.push_str(&text);
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        self.push(format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#222\">{}</text>\n", escape(text)));
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(format!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\"/>\n"));
    }

    fn end(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// Escapes text for SVG and HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// One bar for each peer: the geometric mean of its ratios to the base.
pub fn bars(table: &Table, metric: Metric) -> String {
    let means = (0..table.peers.len()).filter_map(|peer| Some((peer, table.geomean(peer, metric).0?)));
    let means: Vec<(usize, f64)> = means.collect();
    let longest = means.iter().fold(1.0, |longest: f64, (_, mean)| longest.max(*mean));
    let title =
        format!("{}: {}, geometric mean, {} = 1 (shorter is better)", table.title, metric.label(), table.peers[table.base]);
    let mut svg = Svg::new(720, 50 + 26 * means.len() as u32, &title);
    for (i, (peer, mean)) in means.into_iter().enumerate() {
        let y = 40.0 + 26.0 * i as f64;
        svg.text(180.0, y + 14.0, "end", &table.peers[peer]);
        let width = 460.0 * mean / longest;
        svg.push(format!("<rect x=\"190\" y=\"{y}\" width=\"{width:.1}\" height=\"19\" fill=\"{}\"/>\n", colour(peer)));
        svg.text(196.0 + width, y + 14.0, "start", &format!("{mean:.2}"));
    }
    svg.end()
}

/// A logarithmic axis.
struct Logarithmic {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Logarithmic {
    /// An axis over whole powers of ten.
    fn over(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Logarithmic {
        let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
        let (from, to) = (least.log10().floor(), most.log10().ceil());
        Logarithmic { from, to: to.max(from + 1.0), start, end }
    }

    fn place(&self, value: f64) -> f64 {
        self.start + (self.end - self.start) * (value.log10() - self.from) / (self.to - self.from)
    }

    /// The powers of ten.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        (self.from as i32..=self.to as i32).map(|power| 10f64.powi(power))
    }
}

/// One line for each peer: total milliseconds against amount of work.
pub fn curve(curve: &Curve) -> String {
    let (width, height) = (720, 440);
    let title = format!("{}: total time in ms against amount of work (lower is better)", curve.program);
    let mut svg = Svg::new(width, height, &title);
    let amounts: Vec<f64> = curve.amounts.iter().filter_map(|amount| amount.parse().ok()).collect();
    let times = || curve.lines.iter().flat_map(|line| line.milliseconds.iter().flatten().copied());
    if amounts.len() < curve.amounts.len() || times().next().is_none() {
        return svg.end();
    }
    let x = Logarithmic::over(amounts.iter().copied(), 60.0, 560.0);
    let y = Logarithmic::over(times(), 400.0, 40.0);
    for tick in x.ticks() {
        svg.line((x.place(tick), y.start), (x.place(tick), y.end), "#ddd");
        svg.text(x.place(tick), y.start + 18.0, "middle", &format!("{tick}"));
    }
    for tick in y.ticks() {
        svg.line((x.start, y.place(tick)), (x.end, y.place(tick)), "#ddd");
        svg.text(x.start - 6.0, y.place(tick) + 4.0, "end", &format!("{tick}"));
    }
    for (peer, line) in curve.lines.iter().enumerate() {
        let mut path = String::new();
        for (amount, ms) in amounts.iter().zip(&line.milliseconds) {
            let Some(ms) = ms else { continue };
            let (px, py) = (x.place(*amount), y.place(*ms));
            let _ = write!(path, "{}{px:.1} {py:.1}", if path.is_empty() { 'M' } else { 'L' });
            let tip = format!("{}, {amount}: {} ms", line.peer, short(*ms));
            svg.push(format!(
                "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"3\" fill=\"{}\"><title>{tip}</title></circle>\n",
                colour(peer)
            ));
        }
        svg.push(format!("<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", colour(peer)));
        let label = 60.0 + 18.0 * peer as f64;
        svg.line((572.0, label - 4.0), (588.0, label - 4.0), colour(peer));
        svg.text(594.0, label, "start", &line.peer);
    }
    svg.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Line, tests};

    #[test]
    fn bars_are_as_long_as_the_means() {
        let svg = bars(&tests::table(), Metric::Total);
        assert!(svg.contains("width=\"115.0\"") && svg.contains("width=\"460.0\"") && svg.contains(">4.00<"), "{svg}");
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn a_curve_has_a_point_for_every_time() {
        let line = |peer: &str, milliseconds| Line { peer: peer.into(), milliseconds, failures: Vec::new() };
        let lines = vec![line("a<b", vec![Some(1.0), Some(100.0)]), line("c", vec![Some(10.0), None])];
        let svg = curve(&Curve { program: "x".into(), amounts: vec!["10".into(), "1000".into()], lines });
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        assert!(svg.contains("M60.0 400.0L560.0 40.0"), "{svg}");
        assert!(svg.contains(">a&lt;b<") && !svg.contains("NaN"), "{svg}");
    }
}
