package chat

import (
	"strings"
	"unicode/utf8"
)

// The names of our functions in a rewritten template.
const (
	jsonName   = "windrow_json"
	stringName = "windrow_string"
	printName  = "windrow_text"
)

// ourFilters are the filters that become functions.
var ourFilters = map[string]string{"tojson": jsonName, "string": stringName}

// piece is an expression {{ … }} or a statement {% … %} of a template.
type piece struct {
	text     string
	from, to int // in the template
	line     int // from 1
}

// pieces returns the expressions and statements, without comments and what is between raw and
// endraw. One without an end is left out.
func pieces(source string) []piece {
	var list []piece
	raw := false
	line, counted := 1, 0
	for at := 0; ; {
		i := strings.IndexByte(source[at:], '{')
		if i < 0 || at+i+1 >= len(source) {
			return list
		}
		from := at + i
		switch source[from+1] {
		case '#':
			end := strings.Index(source[from:], "#}")
			if end < 0 {
				return list
			}
			at = from + end + 2
			continue
		case '{', '%':
		default:
			at = from + 1
			continue
		}
		to := pieceEnd(source, from)
		if to < 0 {
			return list
		}
		text := source[from:to]
		if raw || text[1] == '%' && keyword(text) == "raw" {
			raw = text[1] != '%' || keyword(text) != "endraw"
			at = to
			if raw && text[1] == '{' {
				at = from + 1
			}
			continue
		}
		line += strings.Count(source[counted:from], "\n")
		counted = from
		list = append(list, piece{text, from, to, line})
		at = to
	}
}

// parts takes the signs of white space control, and the braces, off a piece.
func (p piece) parts() (open, body, shut string) {
	n := len(p.text)
	open, body, shut = p.text[:2], p.text[2:n-2], p.text[n-2:]
	if strings.HasPrefix(body, "-") || strings.HasPrefix(body, "+") {
		open, body = open+body[:1], body[1:]
	}
	// "+" there is no sign of it
	if strings.HasSuffix(body, "-") {
		body, shut = body[:len(body)-1], "-"+shut
	}
	return open, body, shut
}

// keyword returns the first word of a statement.
func keyword(text string) string {
	words := strings.Fields(strings.Trim(text[2:len(text)-2], "-+ \t\r\n"))
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// pieceEnd returns where the piece that begins at from ends, -1 for nowhere. Its end inside a
// string does not count, nor do braces of dictionaries.
func pieceEnd(source string, from int) int {
	end := map[byte]string{'{': "}}", '%': "%}"}[source[from+1]]
	depth := 0
	for i := from + 2; i < len(source); {
		if depth == 0 && strings.HasPrefix(source[i:], end) {
			return i + 2
		}
		switch source[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth = max(0, depth-1)
		}
		i += len(tokenAt(source[i:]))
	}
	if i := strings.Index(source[from:], end); i >= 0 { // brackets or quotes are not closed
		return from + i + 2
	}
	return -1
}

// tokenAt returns the first token of an expression: a string, a word, a number, or one character.
func tokenAt(s string) string {
	switch c := s[0]; {
	case c == '\'' || c == '"':
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case c:
				return s[:i+1]
			}
		}
		return s
	case isNameByte(c):
		n := 1
		for n < len(s) && isNameByte(s[n]) {
			n++
		}
		return s[:n]
	}
	_, width := utf8.DecodeRuneInString(s)
	return s[:width]
}

func isNameByte(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c >= utf8.RuneSelf
}

// rewrite makes calls of our functions of "X | tojson(…)", "X | string" and of printed values. Line
// ends become those of Jinja; the last one is none.
func rewrite(source string) (string, error) {
	for _, name := range []string{jsonName, stringName, printName} {
		if strings.Contains(source, name) {
			return "", templateError("the name %s is taken", name)
		}
	}
	// as Jinja reads a template; the engine leaves line ends alone
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	source = strings.TrimSuffix(source, "\n")
	var out strings.Builder
	done := 0
	for _, p := range pieces(source) {
		open, body, shut := p.parts()
		body = rewriteFilters(body)
		if p.text[1] == '%' && keyword(p.text) == "for" {
			body = rewritePairs(body)
		}
		if p.text[1] == '{' && strings.TrimSpace(body) != "" {
			body = " " + printName + "((" + body + ")) "
		}
		out.WriteString(source[done:p.from] + open + body + shut)
		done = p.to
	}
	out.WriteString(source[done:])
	return out.String(), nil
}

// rewriteFilters turns "X | tojson(…)" into "windrow_json(X, …)". X is the operand of a filter: a
// name, a literal or a bracket, with attributes, indices, calls and earlier filters.
func rewriteFilters(body string) string {
	tokens := tokensOf(body)
	var out []string
	for i := 0; i < len(tokens); i++ {
		name := next(tokens, i+1)
		ours := ""
		if tokens[i] == "|" && name < len(tokens) {
			ours = ourFilters[tokens[name]]
		}
		if ours == "" {
			out = append(out, tokens[i])
			continue
		}
		from := operand(out)
		call := append([]string{ours, "(", "("}, out[from:]...)
		out = append(append(out[:from:from], call...), ")")
		i = name
		args := next(tokens, name+1)
		if args == len(tokens) || tokens[args] != "(" {
			out = append(out, ")")
			continue
		}
		if i = args; next(tokens, args+1) < len(tokens) && tokens[next(tokens, args+1)] != ")" {
			out = append(out, ", ")
		}
	}
	return strings.Join(out, "")
}

// rewritePairs mends the condition of "for k, v in X if …": the engine has the pair as v there, and
// no k.
func rewritePairs(body string) string {
	tokens := tokensOf(body)
	var words []int // places of the tokens that are no white space
	for i := next(tokens, 0); i < len(tokens); i = next(tokens, i+1) {
		words = append(words, i)
	}
	if len(words) < 6 || tokens[words[2]] != "," || tokens[words[4]] != "in" {
		return body
	}
	key, val := tokens[words[1]], tokens[words[3]]
	depth, from := 0, 0
	for _, i := range words[5:] {
		switch tokens[i] {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		case "if":
			if depth == 0 {
				from = i
			}
		case "else": // a choice between two lists
			if depth == 0 {
				return body
			}
		}
	}
	for i := from + 1; from > 0 && i < len(tokens); i++ {
		if p := before(tokens, i); tokens[p] == "." || tokens[p] == "|" {
			continue
		}
		switch tokens[i] {
		case key:
			tokens[i] = val + "[0]"
		case val:
			tokens[i] = val + "[1]"
		}
	}
	return strings.Join(tokens, "")
}

// tokensOf returns all tokens of an expression.
func tokensOf(body string) (tokens []string) {
	for rest := body; rest != ""; {
		t := tokenAt(rest)
		tokens, rest = append(tokens, t), rest[len(t):]
	}
	return tokens
}

// blank reports whether a token is white space.
func blank(token string) bool { return strings.TrimSpace(token) == "" }

// next returns the place of the first token from i on that is no white space.
func next(tokens []string, i int) int {
	for i < len(tokens) && blank(tokens[i]) {
		i++
	}
	return i
}

// operand returns where the expression at the end of a list begins that a filter binds to.
func operand(tokens []string) int {
	i := before(tokens, len(tokens))
	for i >= 0 {
		closing := strings.Contains(")]}", tokens[i])
		if closing {
			if i = opener(tokens, i); i < 0 {
				return 0
			}
		}
		prev := before(tokens, i)
		switch {
		case prev < 0:
			return i
		case closing && (tokens[i] == "(" || tokens[i] == "[") && ends(tokens[prev]):
			i = prev // a call or an index of what is before it
		case !closing && (tokens[prev] == "." || tokens[prev] == "|"):
			if i = before(tokens, prev); i < 0 {
				return prev
			}
		default:
			return i
		}
	}
	return 0
}

// before returns the place of the last token before i that is no white space, -1 for none.
func before(tokens []string, i int) int {
	for i--; i >= 0 && blank(tokens[i]); i-- {
	}
	return i
}

// opener returns the place of the bracket that the one at i closes, -1 for none.
func opener(tokens []string, i int) int {
	depth := 0
	for ; i >= 0; i-- {
		switch tokens[i] {
		case ")", "]", "}":
			depth++
		case "(", "[", "{":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// ends reports whether an expression can end with a token: a bracket after it is a call or an
// index.
func ends(token string) bool {
	switch token {
	case "and", "or", "not", "in", "is", "if", "elif", "else", "for", "set", "filter", "call":
		return false
	case ")", "]", "}":
		return true
	}
	return token[0] == '\'' || token[0] == '"' || isNameByte(token[0])
}

// nesting returns how deep brackets and blocks of a template are inside each other, at most.
func nesting(source string) int {
	blocks, deepest := 0, 0
	for _, p := range pieces(source) {
		depth := 0
		body := p.text[2 : len(p.text)-2]
		minus := 0 // signs and nots in a row recurse too
		for _, t := range tokensOf(body) {
			switch t {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			case "-", "+", "not", "if", "else":
				minus++
			}
			deepest = max(deepest, depth+blocks, minus)
		}
		if p.text[1] == '%' {
			switch word := keyword(p.text); {
			case strings.HasPrefix(word, "end"):
				blocks--
			case word == "if" || word == "for" || word == "macro" || word == "call" ||
				word == "filter" || word == "set" && !strings.Contains(body, "="):
				blocks++
			}
		}
		deepest = max(deepest, blocks)
	}
	return deepest
}
