package rules

import "strconv"

// Bounds of what an error repeats of the policy, in bytes. A path of NULs
// grows fourfold when quoted, and the line must stay below 1 KiB.
const (
	maxKeyShown  = 64
	maxPathShown = 160
)

// An Error says what is wrong with a policy. Its text is one line of at most
// 1 KiB and repeats nothing of the policy but the key and the path concerned:
// a policy may name what its launch must not learn.
type Error struct {
	// Key is where in the policy, for example "hidden[2]" or "log.to".
	// It is empty when the text as a whole is wrong.
	Key string
	// Path is the absolute path concerned, or "".
	Path string
	// Msg says what is wrong. From Parse it is fixed text with at most a
	// byte offset in it.
	Msg string
}

// Error returns "key: message" or "key: "path": message". A key that is not
// made of plain letters is quoted, a long key or path is cut.
func (e *Error) Error() string {
	text := e.Msg
	if e.Path != "" {
		text = QuotePath(e.Path) + ": " + text
	}
	if e.Key != "" {
		text = showKey(e.Key) + ": " + text
	}
	return text
}

func showKey(key string) string {
	plain := len(key) <= maxKeyShown
	for i := 0; plain && i < len(key); i++ {
		c := key[i]
		plain = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			c == '.' || c == '[' || c == ']' || c == '_'
	}
	if plain {
		return key
	}
	return quoteCut(key, maxKeyShown)
}

// QuotePath quotes a path for a message like %q, at most its first 160 bytes.
func QuotePath(path string) string { return quoteCut(path, maxPathShown) }

// quoteCut quotes s like %q, at most its first n bytes.
func quoteCut(s string, n int) string {
	if len(s) <= n {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:n]) + "…"
}

// atByte is the part of a message that says where: bytes from the start of
// the policy, the first being 0.
func atByte(pos int) string { return " (byte " + strconv.Itoa(pos) + ")" }
