package rules_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

var sessionNames = []struct {
	name, value, want string // want "" for no name
}{
	{"plain", "own-session", "own-session"},
	{"all that is safe", "azAZ09._-", "azAZ09._-"},
	{"slash", "a/b", "a_b"},
	{"climbing", "../../etc", ".._.._etc"},
	{"dot", ".", ""},
	{"dot dot", "..", ""},
	{"three dots", "...", "..."},
	{"hidden file", ".x", ".x"},
	{"empty", "", ""},
	{"blank", " \t\r\n\v\f", ""},
	{"no-break space and byte order mark", "\u00a0\ufeff", ""},
	{"space inside", "a b", "a_b"},
	{"130 characters", strings.Repeat("x", 130), strings.Repeat("x", 120)},
	{"120 characters", strings.Repeat("x", 120), strings.Repeat("x", 120)},
	{"an accent is one unit", "é", "_"},
	{"an emoji is two units", "😀", "__"},
	{"an emoji over the end", strings.Repeat("x", 119) + "😀y", strings.Repeat("x", 119) + "_"},
	{"dots after the cut", ".." + strings.Repeat("/", 200), ".." + strings.Repeat("_", 118)},
	{"NUL", "a\x00b", "a_b"},
	{"not UTF-8", "a\xff\xfeb", "a__b"},
	{"half a character", "\xf0\x9f", "__"},
	{"100 KiB", strings.Repeat("/", 100<<10), strings.Repeat("_", 120)},
}

func TestSafeName(t *testing.T) {
	for _, tt := range sessionNames {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := rules.SafeName(tt.value)
			if ok != (tt.want != "") || ok && got != tt.want {
				t.Errorf("SafeName(%.40q) = %q, %v; want %q", tt.value, got, ok, tt.want)
			}
		})
	}
}

var safe = regexp.MustCompile(`^[A-Za-z0-9._-]{1,120}$`)

// FuzzSessionName compares with the definition, unit by unit.
func FuzzSessionName(f *testing.F) {
	for _, tt := range sessionNames {
		f.Add(tt.value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, ok := rules.SafeName(value)
		if ok && (!safe.MatchString(got) || got == "." || got == "..") {
			t.Errorf("SafeName(%q) = %q, which is no safe name", value, got)
		}
		if again, ok2 := rules.SafeName(got); ok && (!ok2 || again != got) {
			t.Errorf("the name of %q is %q", got, again)
		}
		if !utf8.ValidString(value) {
			return
		}
		var want []byte
		for _, u := range utf16.Encode([]rune(value)) {
			if len(want) == 120 {
				break
			}
			c := byte('_')
			if u < 0x80 && safe.Match([]byte{byte(u)}) {
				c = byte(u)
			}
			want = append(want, c)
		}
		if ok && string(want) != got {
			t.Errorf("SafeName(%q) = %q, want %q", value, got, want)
		}
		if !ok && strings.TrimSpace(strings.ReplaceAll(value, "\ufeff", "")) != "" && string(want) != "." && string(want) != ".." {
			t.Errorf("SafeName(%q) gives no name, want %q", value, want)
		}
	})
}
