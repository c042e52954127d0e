package shim

import "strings"

// envProgram returns the path of what env(1) of the GNU coreutils starts when
// words stand behind its name, "" for nothing; its arguments; and its environment.
func envProgram(words, env []string) (path string, args, after []string) {
	given, dir := env, ""
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		w := words[0]
		words = words[1:]
		if w == "-" {
			env = nil
		}
		if w == "-" || w == "--" {
			break
		}
		for letters := envLetters(w); letters != ""; {
			opt, value := letters[0], letters[1:]
			letters = value
			switch opt {
			case 'i':
				env = nil
				continue
			case 'v':
				continue
			}
			if letters = ""; value == "" {
				if len(words) == 0 {
					return "", nil, nil
				}
				value, words = words[0], words[1:]
			}
			switch opt {
			case 'a': // argv[0]
			case 'C':
				dir = value + "/"
			case 'S':
				split, ok := splitString(value, given)
				if !ok {
					return "", nil, nil
				}
				words = append(split, words...)
			case 'u':
				var kept []string
				for _, s := range env {
					if !strings.HasPrefix(s, value+"=") {
						kept = append(kept, s)
					}
				}
				env = kept
			default: // refused, or env prints something and that is all
				return "", nil, nil
			}
		}
	}
	for len(words) > 0 && strings.Contains(words[0], "=") {
		env = append([]string{words[0]}, env...)
		words = words[1:]
	}
	if len(words) == 0 {
		return "", nil, nil
	}
	dirs := []string{""}
	if !strings.Contains(words[0], "/") {
		dirs = pathDirs(env)
	}
	for _, d := range dirs {
		path := words[0]
		if d != "" {
			path = d + "/" + path
		}
		if !strings.HasPrefix(path, "/") {
			path = dir + path
		}
		if startable(path) {
			return path, words[1:], env
		}
	}
	return "", nil, nil
}

// envLetters returns a word of options as a cluster of letters, the last with its
// value behind it. A long option may be cut short. Those that concern signals and
// messages only are left out.
func envLetters(w string) string {
	long, ok := strings.CutPrefix(w, "--")
	if !ok {
		return w[1:]
	}
	name, value, _ := strings.Cut(long, "=")
	for _, o := range [...]string{"aargv0", "Cchdir", "iignore-environment", "0null", "Ssplit-string", "uunset", "0help", "0version"} {
		if strings.HasPrefix(o[1:], name) {
			return o[:1] + value
		}
	}
	return ""
}

// maxArgument is how long the kernel lets an argument be (execve(2)).
const maxArgument = 128 << 10

// splitString splits the value of -S as env does. It reports false if env would
// refuse it.
func splitString(s string, env []string) (words []string, ok bool) {
	const escapes, meanings = `"#$'\fnrtv_`, "\"#$'\\\f\n\r\t\v "
	word, in, quote := "", false, byte(0)
	s += " " // ends the last word
	for i := 0; i < len(s); i++ {
		c, blank := s[i:i+1], false
		switch b := s[i]; {
		case b == '\\' && (quote != '\'' || s[i+1] == '\\' || s[i+1] == '\''):
			i++
			k := strings.IndexByte(escapes, s[i])
			switch {
			case s[i] == 'c' && quote == 0: // the rest is left out
				blank, i = true, len(s)
			case k < 0:
				return nil, false
			default:
				c, blank = meanings[k:k+1], s[i] == '_' && quote == 0
			}
		case b == '$' && quote != '\'':
			name, _, closed := strings.Cut(s[i+1:], "}")
			if !closed || !strings.HasPrefix(name, "{") {
				return nil, false
			}
			i += 1 + len(name)
			v, set := getenv(env, name[1:])
			if c = v; !set {
				continue
			}
		case quote != 0:
			if b == quote {
				quote, c = 0, ""
			}
		case b == '\'' || b == '"':
			quote, c = b, ""
		case b == '#' && !in:
			return words, true
		default:
			blank = strings.Contains(" \t\n\v\f\r", c)
		}
		if !blank {
			word, in = word+c, true
		} else if in {
			words = append(words, word)
			word, in = "", false
		}
		if len(word) >= maxArgument {
			return nil, false
		}
	}
	return words, quote == 0
}
