package chart

import (
	"cmp"
	"slices"
)

// Node is a node of [Graph].
type Node struct {
	Title, Text string // two lines
	Color       Color  // of its border
	Heavy       bool   // whether it is the one that the picture is about
	// After are the indices of the nodes that point to this one. There is no way from a node to itself.
	After []int
}

const (
	nodeWidth, nodeHeight = 224.0, 48.0
	nodeGap, layerGap     = 18.0, 34.0
	arrowSize             = 4.0
)

// Graph draws nodes in layers from top to bottom, with lines from each to those after it. The
// picture is as wide as its widest layer needs.
func Graph(title string, nodes []Node) Drawing {
	layers := layersOf(nodes)
	most := 1
	for _, l := range layers {
		most = max(most, len(l))
	}
	d := Drawing{Title: clean(title), Width: 2*padding + float64(most)*(nodeWidth+nodeGap) - nodeGap}
	places := make([]box, len(nodes))
	for y, l := range layers {
		left := (d.Width - float64(len(l))*(nodeWidth+nodeGap) + nodeGap) / 2
		for x, n := range l {
			at := Point{left + float64(x)*(nodeWidth+nodeGap), padding + float64(y)*(nodeHeight+layerGap)}
			places[n] = box{at.X, at.Y, at.X + nodeWidth, at.Y + nodeHeight}
			d.Height = max(d.Height, at.Y+nodeHeight+padding)
		}
	}
	var lines [][]Point
	var arrows []Point
	for n, node := range nodes {
		for _, before := range node.After {
			from, to := places[before], places[n]
			end := Point{(to.left + to.right) / 2, to.top - 2*arrowSize}
			lines = append(lines, []Point{{(from.left + from.right) / 2, from.bottom}, end})
			arrows = append(arrows, Point{end.X, end.Y + arrowSize})
		}
	}
	if lines != nil {
		d.Shapes = append(d.Shapes, Path{Lines: lines, Stroke: Faint, Width: 1.2}, Marks{At: arrows, Mark: Valley, Size: arrowSize, Color: Faint})
	}
	for n, node := range nodes {
		b, width := places[n], 1.5
		if node.Heavy {
			width = 3
		}
		room, middle := b.right-b.left-12, (b.left+b.right)/2
		d.Shapes = append(d.Shapes,
			Path{Lines: [][]Point{b.rectangle()}, Fill: Paper, Stroke: cmp.Or(node.Color, Faint), Width: width},
			Text{At: Point{middle, b.top + 19}, Anchor: Middle, Size: textSize, Color: Ink, Text: fit(node.Title, textSize, room), Full: clean(node.Title)},
			Text{At: Point{middle, b.top + 38.5}, Anchor: Middle, Size: textSize, Color: Faint, Text: fit(node.Text, textSize, room), Full: clean(node.Text)})
	}
	return d
}

// layersOf puts each node below those before it, and near to them.
func layersOf(nodes []Node) (layers [][]int) {
	depth := make([]int, len(nodes))
	for range nodes { // the longest way has no more nodes
		changed := false
		for n, node := range nodes {
			for _, before := range node.After {
				if depth[n] <= depth[before] {
					depth[n], changed = depth[before]+1, true
				}
			}
		}
		if !changed {
			break
		}
	}
	for n := range nodes {
		for len(layers) <= depth[n] {
			layers = append(layers, nil)
		}
		layers[depth[n]] = append(layers[depth[n]], n)
	}
	place := make([]float64, len(nodes)) // in its layer, from 0 to 1
	for _, l := range layers {
		wish := map[int]float64{}
		for x, n := range l {
			wish[n] = float64(x) / float64(len(l))
			if after := nodes[n].After; len(after) > 0 {
				wish[n] = 0
				for _, before := range after {
					wish[n] += place[before] / float64(len(after))
				}
			}
		}
		slices.SortStableFunc(l, func(a, b int) int { return cmp.Compare(wish[a], wish[b]) })
		for x, n := range l {
			place[n] = (float64(x) + 0.5) / float64(len(l))
		}
	}
	return layers
}
