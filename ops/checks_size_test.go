package ops

import "testing"

// TestSizesThatAskForAttention: neither small tables nor large ones with many tasks.
func TestSizesThatAskForAttention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		got  []Finding
		want Level
		text string
	}{
		{indexBloat(100<<20, 10), Fine, "the indexes of tasks take 104.9 MB for 10 tasks"},
		{indexBloat(1<<30, 10_000_000), Fine, "the indexes of tasks take 1.1 GB for 10,000,000 tasks"},
		{indexBloat(1<<30, 1), Attention, "the indexes of tasks take 1.1 GB for 1 task"},
		{tableBloat(3<<30, 2<<30), Fine, "the table of tasks uses 3.2 GB, and has 2.1 GB of free space"},
		{tableBloat(1<<30, 2<<30), Attention, "the table of tasks uses 1.1 GB, and has 2.1 GB of free space"},
		{tableBloat(0, 500), Fine, "the table of tasks uses 0 bytes, and has 500 bytes of free space"},
		{keptWAL("standby", 16<<20), Fine, "replication slot standby keeps 16.8 MB of the write-ahead log"},
		{keptWAL("standby", 5<<40), Attention, "replication slot standby keeps 5.5 TB of the write-ahead log"},
		{fileWAL(4 << 20), Fine, "the write-ahead log takes 4.2 MB"},
		{fileWAL(2 << 30), Attention, "the write-ahead log takes 2.1 GB"},
	} {
		if len(c.got) != 1 || c.got[0].Level != c.want || c.got[0].Text != c.text || (c.got[0].Advice == "") != (c.want == Fine) {
			t.Errorf("%+v, want %v: %s", c.got, c.want, c.text)
		}
	}
}
