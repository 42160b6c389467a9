package statements

import (
	"fmt"
	"strings"
)

// Binds lists the arguments of [Stmt.Bind], in their order: parameters by their
// names, the whole batch as rows, a whole column of it as name[], one cell of it as name[row].
func (s Stmt) Binds() string {
	names := make([]string, len(s.params))
	for i, p := range s.params {
		switch p.kind {
		case scalar:
			names[i] = p.name
		case wholeColumn:
			names[i] = p.name + "[]"
		case wholeBatch:
			names[i] = "rows"
		case cell:
			names[i] = fmt.Sprintf("%s[%d]", p.name, p.row)
		}
	}
	return strings.Join(names, ", ")
}
