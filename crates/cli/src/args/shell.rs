//! The commands of a page: what its shell blocks have readers type.
//!
//! Part of the unit tests and of the end-to-end tests, so that both read the same commands.

/// The arguments of every `toolgate` command in the blocks `sh`, `console` and `powershell`.
pub(crate) fn commands(page: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut language = None;
    for line in page.replace("\\\n", " ").lines() {
        if let Some(name) = line.trim_start().strip_prefix("```") {
            language = if language.is_some() { None } else { Some(name.to_owned()) };
            continue;
        }
        let typed = match language.as_deref() {
            Some("sh" | "powershell") => line,
            Some("console") => line.strip_prefix("$ ").unwrap_or_default(),
            _ => "",
        };
        found.extend(split(typed).iter().filter_map(|words| arguments(words)));
    }
    found
}

/// The commands of a line, as words. A redirection ends a command, a comment ends the line.
fn split(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    let (mut word, mut quote) = (None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(end)) if c == end => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            (' ', None) => words.extend(word.take()),
            ('&' | ';' | '|', None) => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            ('>', None) if word.is_none() => commands.push(std::mem::take(&mut words)),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    commands.push(words);
    commands
}

/// What follows `toolgate`, also after variables, `runuser … --`, `wsl … --` and `cargo run … --`.
fn arguments(words: &[String]) -> Option<Vec<String>> {
    let start = words.iter().position(|word| !word.contains('='))?;
    let rest = words.get(start..)?;
    let after_launcher =
        rest.iter().position(|word| word == "--").and_then(|at| rest.get(at + 1..));
    let found = match (rest.first()?.as_str(), after_launcher) {
        ("toolgate", _) => rest.get(1..),
        ("cargo", Some(arguments)) if rest.get(1)? == "run" => Some(arguments),
        ("runuser" | "sudo" | "wsl", Some([program, arguments @ ..])) if program == "toolgate" => {
            Some(arguments)
        }
        _ => None,
    };
    found.map(<[String]>::to_vec)
}

#[test]
fn commands_are_found() {
    let page = "toolgate no\n```sh\nA=1 toolgate a 'b c' --d \"#e\" # toolgate f\nls && toolgate g > h\n\
                runuser -u toolgate -- toolgate i &\ncargo run --release -- j\ncargo test\n```\n\
                ```console\n$ toolgate k <l>\ntoolgate m\n```\n```yaml\ntoolgate n\n```\n";
    let found: Vec<String> = commands(page).iter().map(|words| words.join("|")).collect();
    assert_eq!(found, ["a|b c|--d|#e", "g", "i", "j", "k|<l>"]);
}
