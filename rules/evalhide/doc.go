// Package evalhide makes the policy that hides from an agent how it is graded:
// the graders in its checkout, the Git store that holds them too, and what the
// evaluation keeps beside them.
package evalhide
