package rules

// skip moves behind a value of right syntax. Depth counts the objects and
// arrays around it, so that the recursion is bounded.
func (r *jsonReader) skip(depth int) error {
	switch c := r.next(); {
	case c == '{' || c == '[':
		return r.skipList(c, depth+1)
	case c == '"':
		_, err := r.skipString()
		return err
	case c == 't':
		return r.skipWord("true")
	case c == 'f':
		return r.skipWord("false")
	case c == 'n':
		return r.skipWord("null")
	case c == '-' || '0' <= c && c <= '9':
		return r.skipNumber()
	}
	return r.syntax()
}

func (r *jsonReader) skipList(open byte, depth int) error {
	if depth > maxDepth {
		return &Error{Msg: "nested too deep" + atByte(r.pos)}
	}
	end := byte(']')
	if open == '{' {
		end = '}'
	}
	r.pos++
	if r.accept(end) {
		return nil
	}
	for {
		if open == '{' {
			if r.next() != '"' {
				return r.syntax()
			}
			if _, err := r.skipString(); err != nil {
				return err
			}
			if !r.accept(':') {
				return r.syntax()
			}
		}
		if err := r.skip(depth); err != nil {
			return err
		}
		if r.accept(end) {
			return nil
		}
		if !r.accept(',') {
			return r.syntax()
		}
	}
}

func (r *jsonReader) skipWord(word string) error {
	if len(r.data)-r.pos < len(word) || string(r.data[r.pos:r.pos+len(word)]) != word {
		return r.syntax()
	}
	r.pos += len(word)
	return nil
}

func (r *jsonReader) skipNumber() error {
	if r.data[r.pos] == '-' {
		r.pos++
	}
	if r.pos < len(r.data) && r.data[r.pos] == '0' {
		r.pos++
	} else if !r.skipDigits() {
		return r.syntax()
	}
	if r.pos < len(r.data) && r.data[r.pos] == '.' {
		r.pos++
		if !r.skipDigits() {
			return r.syntax()
		}
	}
	if r.pos < len(r.data) && r.data[r.pos]|0x20 == 'e' {
		r.pos++
		if r.pos < len(r.data) && (r.data[r.pos] == '+' || r.data[r.pos] == '-') {
			r.pos++
		}
		if !r.skipDigits() {
			return r.syntax()
		}
	}
	return nil
}

// skipDigits reports whether there was at least one digit.
func (r *jsonReader) skipDigits() bool {
	start := r.pos
	for r.pos < len(r.data) && '0' <= r.data[r.pos] && r.data[r.pos] <= '9' {
		r.pos++
	}
	return r.pos > start
}
