package sqlgen

import (
	"strings"

	"github.com/falldue/falldue/dialect"
)

// renderer writes a guarded tree as SQL without parameters. The text consists of
// operators, functions, numbers that the dialect writes, and the expression for
// n.
type renderer struct {
	strings.Builder
	d dialect.Dialect
	n string // n as a double
}

// The precedence of the rendered SQL, which is the same on all engines.
const (
	sqlSum = iota
	sqlProduct
	sqlAtom
)

// functions names the operations that are plain function calls.
var functions = map[op]string{
	opLeast: "least", opGreatest: "greatest", opPower: "power", opExp: "exp", opLn: "ln", opLog10: "log10",
	opSqrt: "sqrt", opAtan: "atan", opFloor: "floor", opCeil: "ceil", opAbs: "abs",
}

// node writes x, in parentheses if its precedence is lower than place.
func (r *renderer) node(x *node, place int) {
	switch x.op {
	case opNum:
		r.number(x.num)
	case opN:
		r.WriteString(r.n)
	case opAdd:
		r.infix(x, " + ", sqlSum, place)
	case opSub:
		r.infix(x, " - ", sqlSum, place)
	case opMul:
		r.infix(x, " * ", sqlProduct, place)
	case opDiv:
		r.infix(x, " / ", sqlProduct, place)
	case opSafeDiv:
		r.WriteString("coalesce(")
		r.node(x.args[0], sqlProduct)
		r.WriteString(" / nullif(")
		r.node(x.args[1], sqlSum)
		r.WriteString(", ")
		r.number(0)
		r.WriteString("), ")
		r.number(0)
		r.WriteString(")")
	case opNeg:
		r.WriteString("(-")
		r.node(x.args[0], sqlAtom)
		r.WriteString(")")
	case opIf:
		r.conditional(x)
	default:
		name, known := functions[x.op]
		if !known {
			panic("sqlgen: an unknown operation was rendered")
		}
		r.call(r.d.Func(name), x.args)
	}
}

func (r *renderer) infix(x *node, sign string, own, place int) {
	if own < place {
		r.WriteString("(")
		defer r.WriteString(")")
	}
	r.node(x.args[0], own)
	r.WriteString(sign)
	r.node(x.args[1], own+1)
}

func (r *renderer) call(name string, args []*node) {
	r.WriteString(name + "(")
	for i, arg := range args {
		if i > 0 {
			r.WriteString(", ")
		}
		r.node(arg, sqlSum)
	}
	r.WriteString(")")
}

func (r *renderer) conditional(x *node) {
	r.WriteString("case when ")
	r.node(x.args[0], sqlSum)
	r.WriteString(" " + sqlComparison(x.cmp) + " ")
	r.node(x.args[1], sqlSum)
	r.WriteString(" then ")
	r.node(x.args[2], sqlSum)
	r.WriteString(" else ")
	r.node(x.args[3], sqlSum)
	r.WriteString(" end")
}

func (r *renderer) number(v float64) { r.WriteString(r.d.Literal(v)) }

func sqlComparison(cmp CompareOp) string {
	switch cmp {
	case Less, LessEqual, Greater, GreaterEqual:
		return string(cmp)
	case Equal:
		return "="
	case NotEqual:
		return "<>"
	}
	panic("sqlgen: an unknown comparison was rendered")
}
