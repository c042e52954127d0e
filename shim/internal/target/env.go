package target

import "strings"

// envProgram returns the path of what env(1) starts when words stand behind its
// name, its arguments, and its environment; "" when they hold another option than
// -S, or quoting. Those are rare in #! lines, and [maxReturns] ends what they lead
// to.
func envProgram(words, env []string) (path string, args, after []string) {
	if len(words) > 0 {
		text, ok := strings.CutPrefix(words[0], "--split-string=")
		if !ok {
			text, ok = strings.CutPrefix(words[0], "-S")
		}
		switch {
		case ok && strings.ContainsAny(text, `\'"$#`):
			return "", nil, nil
		case ok:
			words = append(strings.Fields(text), words[1:]...)
		}
	}
	for len(words) > 0 && strings.Contains(words[0], "=") {
		env = append([]string{words[0]}, env...)
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		return "", nil, nil
	}
	if strings.Contains(words[0], "/") {
		return words[0], words[1:], env
	}
	for _, dir := range PathDirs(env) {
		if path := dir + "/" + words[0]; startable(path) {
			return path, words[1:], env
		}
	}
	return "", nil, nil
}
