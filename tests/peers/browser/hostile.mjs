// Strings that break pages which do not escape what they show.

const base = [
  "<script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>", "\"><svg onload=window.pwned=1>",
  "'><img src=x onerror=window.pwned=1>", "</title><script>window.pwned=1</script>", "</textarea><script>window.pwned=1</script>",
  "</pre><script>window.pwned=1</script>", "</code></bdi></td><td>", "javascript:window.pwned=1", "data:text/html,<script>window.pwned=1</script>",
  "{{7*7}}", "${7*7}", "{% raw %}", "<%= 1 %>", "#{1}", "\\u003cscript\\u003e", "&lt;script&gt;", "&#60;script&#62;", "%3Cscript%3E",
  "onfocus=window.pwned=1 autofocus=", "\" onmouseover=\"window.pwned=1", "' onmouseover='window.pwned=1", "` onerror=`window.pwned=1",
  "<style>*{display:none}</style>", "<link rel=stylesheet href=//evil.example/x.css>", "<meta http-equiv=refresh content=0;url=//evil.example>",
  "<base href=//evil.example/>", "<iframe srcdoc='<script>parent.pwned=1</script>'>", "<form action=//evil.example><input name=csrf>", "<a href=javascript:window.pwned=1>x</a>",
  "<math><mtext><table><mglyph><style><img src=x onerror=window.pwned=1>", "<noscript><p title=\"</noscript><img src=x onerror=window.pwned=1>\">",
  "--><script>window.pwned=1</script><!--", "]]><script>window.pwned=1</script>", "<!--", "-->", "*/", "/*", "//", "\\", "\\\\", "'", "\"", "`", ";", "&", "<", ">", "</", "/>",
  "../../etc/passwd", "..%2f..%2f", "/", "//", "?x=1", "#frag", "a/b", "a b", "a+b", "%", "%00", "%zz", "a\tb", "a\u00a0b",
  "\u202Eevil\u202C", "\u2066x\u2069", "a\u200Bb", "a\u200Db", "\uFEFFbom", "\u00ADsoft", "\u2028line", "\u2029para", "e\u0301\u0301\u0301\u0301\u0301\u0301", "Z\u0351\u036B\u0343a\u0369l\u0347g\u0322o",
  "кириллица", "管理者", "עברית", "العربية", "🙂🙃", "👨‍👩‍👧‍👦", "ｆｕｌｌ", "Ａ", "аdmin", "null", "undefined", "true", "0", "-1", "1e999", "NaN",
  "__proto__", "constructor", "toString", "hasOwnProperty", "W".repeat(180), "word ".repeat(30), "a".repeat(60) + "@" + "b".repeat(60), "SELECT * FROM x; --", "$(id)", "`id`", "; rm -rf /", "| cat", "\\n", "%0d%0aSet-Cookie: x=1",
];
const around = (string) => [`${string}${string}`, `x${string}`, `${string}<b>`];
const more = base.slice(0, 34).flatMap(around);

/** 200 strings. */
export const hostile = [...base, ...more].slice(0, 200);
