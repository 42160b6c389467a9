package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/go-sql-driver/mysql"
	containertypes "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

// Failed connections while a server starts are expected, but testcontainers and the
// MySQL driver would print each of them.
func init() {
	log.SetDefault(log.NewNoopLogger())
	_ = mysql.SetLogger(&mysql.NopLogger{})
}

// dockerAvailable returns nil if a Docker engine is available.
func dockerAvailable(ctx context.Context) error {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	defer provider.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return provider.Health(ctx)
}

// startContainer runs the engine's image on a Docker engine, with its data in
// memory. The tests create hundreds of databases, and on a busy disk they may take
// four times as long.
func startContainer(ctx context.Context, name string) (*server, error) {
	inMemory := testcontainers.WithTmpfs(map[string]string{engines[name].data: ""})
	return runContainer(ctx, name, slices.Concat(engines[name].settings, engines[name].fastSettings), inMemory)
}

// runContainer runs the engine's image with the given server settings.
func runContainer(ctx context.Context, name string, settings []string, more ...testcontainers.ContainerCustomizer) (*server, error) {
	if engines[name].image == "" {
		return nil, errors.New("it is not run in containers")
	}
	if err := dockerAvailable(ctx); err != nil {
		return nil, fmt.Errorf("no engine answers at DOCKER_HOST or /var/run/docker.sock: %w", err)
	}
	e := engines[name]
	image := e.image
	if other := os.Getenv(imageVariable(name)); other != "" {
		image = other
	}
	if err := pullIfMissing(ctx, image); err != nil {
		return nil, fmt.Errorf("image %s: %w", image, err)
	}
	port, err := network.ParsePort(e.port)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	dsn := func(host string, port network.Port) string {
		// A Docker engine on this machine: the port is bound to IPv4 alone.
		if host == "localhost" {
			host = loopback.String()
		}
		return e.dsn(password, net.JoinHostPort(host, port.Port()))
	}
	// The log says "ready" while an image is still setting itself up. Only an
	// answer to a query on the outer port proves that the server is ready.
	ready := wait.ForSQL(e.port, e.driver, dsn).WithStartupTimeout(2 * time.Minute)
	container, err := testcontainers.Run(ctx, image, append(more,
		testcontainers.WithEnv(e.env),
		testcontainers.WithExposedPorts(e.port),
		testcontainers.WithHostConfigModifier(bindTo(ctx, port)),
		testcontainers.WithCmd(append([]string{e.program}, settings...)...),
		testcontainers.WithWaitStrategyAndDeadline(2*time.Minute, ready))...)
	stop := func() {
		if err := testcontainers.TerminateContainer(container); err != nil {
			fmt.Fprintf(os.Stderr, "testdb: stop the container of %s: %v\n", name, err)
		}
	}
	if err != nil {
		if container != nil {
			err = errors.Join(err, containerLog(container))
			stop()
		}
		return nil, err
	}
	host, err := container.Host(ctx)
	if err == nil {
		port, err = container.MappedPort(ctx, e.port)
	}
	if err != nil {
		stop()
		return nil, err
	}
	again := func(ctx context.Context, kill bool) error { return restart(ctx, container, kill) }
	return &server{dsn: dsn(host, port), origin: "image " + image, stop: stop, restart: again}, nil
}

// restart stops a container's server, by SIGKILL if kill is set, and starts it again
// with the data that it left.
func restart(ctx context.Context, container *testcontainers.DockerContainer, kill bool) error {
	if kill {
		provider, err := testcontainers.NewDockerProvider()
		if err != nil {
			return err
		}
		defer provider.Close()
		if _, err := provider.Client().ContainerKill(ctx, container.GetContainerID(), client.ContainerKillOptions{}); err != nil {
			return err
		}
	}
	timeout := time.Minute // longer than a clean shutdown takes
	if err := container.Stop(ctx, &timeout); err != nil {
		return err
	}
	return container.Start(ctx)
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// bindTo publishes a container's port on the loopback interface alone, if the
// Docker engine is on this machine. So the port cannot be reached from the network,
// and not by IPv6, for which Docker would choose a different port number, possibly
// the number of another container's IPv4 port. bindTo chooses the number itself, because
// the Docker engine would choose a new one when the container starts again.
func bindTo(ctx context.Context, port network.Port) func(*containertypes.HostConfig) {
	return func(config *containertypes.HostConfig) {
		provider, err := testcontainers.NewDockerProvider()
		if err != nil {
			return // Run returns the same error
		}
		defer provider.Close()
		if host, err := provider.DaemonHost(ctx); err == nil && host == "localhost" {
			number, _ := freePort() // after an error the Docker engine chooses one
			config.PortBindings = network.PortMap{port: {{HostIP: loopback, HostPort: number}}}
		}
	}
}

// pullIfMissing pulls an image that the Docker engine does not have. testcontainers
// would pull it too, but would try for a quarter of an hour if no registry can be
// reached.
func pullIfMissing(ctx context.Context, image string) error {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	defer provider.Close()
	if _, err := provider.Client().ImageInspect(ctx, image); err == nil || !errdefs.IsNotFound(err) {
		return err
	}
	fmt.Fprintf(os.Stderr, "testdb: pulling %s\n", image)
	pull, err := provider.Client().ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return err
	}
	return pull.Wait(ctx)
}

// containerLog returns the end of a container's log, as an error.
func containerLog(container *testcontainers.DockerContainer) error {
	logs, err := container.Logs(context.Background())
	if err != nil {
		return err
	}
	defer logs.Close()
	text, err := io.ReadAll(logs)
	if err != nil {
		return err
	}
	return errors.New(lastLines(string(text)))
}
