package sqlgen

import "math/rand/v2"

// choices makes the decisions for a random tree: from random numbers, or from a
// fuzzer's bytes.
type choices interface {
	// IntN returns a number from 0 to n-1.
	IntN(n int) int
}

// bytesAsChoices uses one byte for each decision. When none is left, it decides
// 0, which ends every branch.
type bytesAsChoices []byte

func (b *bytesAsChoices) IntN(n int) int {
	if len(*b) == 0 {
		return 0
	}
	v := int((*b)[0]) % n
	*b = (*b)[1:]
	return v
}

func seeded(seed uint64) choices { return rand.New(rand.NewPCG(seed, 0)) }

// edgeNumbers are near the points where overflow, underflow, cancellation and
// rounding begin.
var edgeNumbers = []Number{
	{0, Bare}, {1, Bare}, {2, Bare}, {0.5, Bare}, {3, Bare}, {10, Bare}, {15, Second}, {1.6, Bare}, {0.1, Bare}, {917, Minute},
	{24, Hour}, {365, Day}, {500, Millisecond}, {1e-6, Bare}, {1e-9, Bare}, {1e6, Bare}, {2147483647, Bare}, {1e15, Bare},
	{9007199254740993, Bare}, {1e40, Bare}, {1e100, Bare}, {1e-40, Bare}, {1e-100, Bare}, {5000, Bare}, {17, Bare}, {16, Bare},
	{230.3, Bare}, {0.999999, Bare}, {1.0000001, Bare}, {4, Bare}, {20.4, Day}, {-3, Bare}, {-0.7, Hour},
}

var (
	binaryOps  = []BinaryOp{Add, Subtract, Multiply, Divide, Power}
	functions1 = []Func{Exp, Ln, Log10, Sqrt, Atan, Floor, Ceil, Abs}
)

// randomTree builds any tree that the language allows, useful or not.
func randomTree(c choices, depth int) Expr {
	if depth == 0 {
		return randomLeaf(c)
	}
	grow := func() Expr { return randomTree(c, depth-1) }
	switch c.IntN(10) {
	case 0, 1:
		return randomLeaf(c)
	case 2, 3, 4, 5:
		op := binaryOps[c.IntN(len(binaryOps))]
		return Binary{op, grow(), grow()}
	case 6:
		return Call{functions1[c.IntN(len(functions1))], []Expr{grow()}}
	case 7:
		f := []Func{Min, Max, Pow}[c.IntN(3)]
		args := []Expr{grow(), grow()}
		for f != Pow && c.IntN(3) == 2 && len(args) < 4 {
			args = append(args, grow())
		}
		return Call{f, args}
	case 8:
		return If{Compare{comparisons[c.IntN(len(comparisons))], grow(), grow()}, grow(), grow()}
	default:
		return Neg{grow()}
	}
}

func randomLeaf(c choices) Expr {
	switch c.IntN(8) {
	case 0, 1, 2, 3:
		return N{}
	case 4:
		return []Expr{Pi, E}[c.IntN(2)]
	case 5:
		return Number{float64(c.IntN(50)), Bare}
	default:
		return edgeNumbers[c.IntN(len(edgeNumbers))]
	}
}

// randomRoot builds a tree whose value is likely to be between 0 and MaxDelay.
// Half of all random trees are outside, where limiting the value hides a wrong
// digit or sign.
func randomRoot(c choices, depth int) Expr {
	x := randomTree(c, depth)
	switch c.IntN(6) {
	case 0, 1:
		return Call{Abs, []Expr{x}}
	case 2:
		return Binary{Multiply, Number{1, Day}, Binary{Add, Number{2, Bare}, Call{Atan, []Expr{x}}}}
	case 3:
		return Binary{Add, Number{300, Bare}, Call{Ln, []Expr{Call{Abs, []Expr{x}}}}}
	default:
		return x
	}
}

// randomFormula compiles a random tree. All but the largest trees compile.
func randomFormula(c choices) Formula {
	for {
		f, err := Compile(randomRoot(c, 2+c.IntN(4)))
		if err == nil {
			return f
		}
	}
}
