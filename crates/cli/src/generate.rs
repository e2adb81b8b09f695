//! `vinelift generate`: a model that writes text.

mod decoder;
mod sampling;
mod vocabulary;

use crate::failure::Failure;
use crate::options::{CompileArgs, ModelArgs};
use clap::builder::NonEmptyStringValueParser;
use decoder::Decoder;
use sampling::Sampler;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vocabulary::Vocabulary;

/// Have a language model go on with a text
///
/// The model takes `input_ids`, and may take `attention_mask`, `position_ids` and `beam_idx`, as models that
/// optimum-intel exports do; it gives `logits`. What it keeps of the text is in its variables; without any, it reads the
/// whole text for every token. How fast it was goes to stderr.
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift generate model.xml --prompt 'It was a dark and '
  vinelift generate model.xml --prompt 'It was a dark and ' --tokens 500 --temperature 0.8 --top-k 20 --seed 7")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// The text of each token, a JSON list of strings: a token's number is its place [default: MODEL.vocab.json beside
    /// the .xml]
    #[arg(long, value_name = "FILE.json")]
    vocabulary: Option<PathBuf>,
    /// The text to go on with. It is taken for tokens from left to right, each the longest that fits
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    prompt: String,
    /// How many tokens to write
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    tokens: u32,
    /// Draw each token: the likelihoods that the model gives are sharpened below 1, and levelled above. With 0, the
    /// likeliest token is taken
    #[arg(long, value_name = "T", default_value_t = 0.0, value_parser = temperature)]
    temperature: f64,
    /// Draw from the K likeliest tokens only
    #[arg(long, value_name = "K", requires = "temperature", value_parser = clap::value_parser!(u32).range(1..))]
    top_k: Option<u32>,
    /// The same seed draws the same text
    #[arg(
        long,
        value_name = "SEED",
        requires = "temperature",
        default_value_t = 0
    )]
    seed: u64,
    #[command(flatten)]
    compile: CompileArgs,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let compiled = args.model.compile(args.compile.config())?;
    let mut decoder = Decoder::new(&compiled)?;
    let path = args.vocabulary.clone();
    let path = path.unwrap_or_else(|| args.model.model.with_extension("vocab.json"));
    let vocabulary = Vocabulary::read(&path)?;
    let mut tokens = vocabulary.encode(&args.prompt)?;
    let mut sampler = Sampler::new(args.temperature, args.top_k, args.seed);
    let given = tokens.len();
    let start = Instant::now();
    let mut first = Duration::ZERO;
    for written in 0..args.tokens {
        let logits = decoder.next(&tokens)?;
        if written == 0 {
            vocabulary.require(logits.len())?;
            write(out, &args.prompt)?;
        }
        let token = sampler.choose(&logits).ok_or_else(|| {
            let text = "the model's logits are not all numbers, or the greatest is infinite";
            Failure::Message(format!("{text}, after {written} of its own tokens"))
        })?;
        write(out, vocabulary.text(token))?;
        if written == 0 {
            first = start.elapsed();
        }
        tokens = vec![token];
    }
    let rest = start.elapsed().saturating_sub(first);
    write(out, "\n")?;
    let report = report(given, args.tokens, first, rest);
    // Nothing is left to be told to if this cannot be written.
    let _ = writeln!(io::stderr(), "{report}");
    Ok(())
}

/// How long the first token took, with what was compiled for it, and how fast those after it came.
fn report(given: usize, written: u32, first: Duration, rest: Duration) -> String {
    let first = first.as_secs_f64() * 1e3;
    let mut text = format!(
        "prompt: {given} tokens, {first:.1} ms to the first token\nwritten: {written} tokens"
    );
    if written > 1 {
        let rate = f64::from(written - 1) / rest.as_secs_f64().max(1e-9);
        text += &format!(", {rate:.1} tokens/s after the first");
    }
    text
}

/// At once, for who reads along.
fn write(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn temperature(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if number >= 0.0 && number.is_finite() {
        Ok(number)
    } else {
        Err("expected a number from 0".to_owned())
    }
}
