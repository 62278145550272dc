package orders

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// RocketMQ is a broker for one test, with topics and groups that no other test has. Behind all of
// them there is one child process, rocketbroker standalone, which begins with the first and ends
// with this process. The variable ROCKETBROKER says where the program is, unless it is in the path.
type RocketMQ struct {
	NameServers []string // what the program under test is given
	t           *testing.T
	number      int64
	server      *server
}

type server struct {
	nameServer, broker string
	log                *os.File
	admin              admin.Admin
}

var (
	started = sync.OnceValues(start)
	tests   atomic.Int64
)

// NewRocketMQ starts the broker, unless it is there. What it has logged is shown if the test fails.
func NewRocketMQ(t *testing.T) *RocketMQ {
	t.Helper()
	server, err := started()
	if err != nil {
		t.Fatal(err)
	}
	begin := size(server.log)
	t.Cleanup(func() {
		if t.Failed() {
			words := make([]byte, size(server.log)-begin)
			server.log.ReadAt(words, begin)
			t.Logf("log of the broker:\n%s", words)
		}
	})
	return &RocketMQ{[]string{server.nameServer}, t, tests.Add(1), server}
}

// Topic makes a topic of this test; its whole name.
func (mq *RocketMQ) Topic(name string, queues int) string {
	mq.t.Helper()
	topic := mq.Group(name)
	err := mq.server.admin.CreateTopic(
		context.Background(),
		admin.WithTopicCreate(topic),
		admin.WithBrokerAddrCreate(mq.server.broker),
		admin.WithReadQueueNums(queues),
		admin.WithWriteQueueNums(queues),
	)
	if err != nil {
		mq.t.Fatal(err)
	}
	return topic
}

// Group is a name for a group of this test.
func (mq *RocketMQ) Group(name string) string {
	return fmt.Sprintf("%s-%d", name, mq.number)
}

func start() (*server, error) {
	program := os.Getenv("ROCKETBROKER")
	if program == "" {
		program = "rocketbroker"
	}
	command := exec.Command(
		program, "standalone", "--temporary", "--exit-with-parent", "--output=json",
		"--namesrv-port=0", "--port=0", "--metrics-port=off",
		"--set=longPollingEnable=false", "--set=shortPollingTimeMills=100",
	)
	log, err := os.CreateTemp("", "rocketbroker")
	if err != nil {
		return nil, err
	}
	os.Remove(log.Name()) // It stays as long as it is open.
	command.Stderr = log
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err = command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		words := make([]byte, size(log))
		log.ReadAt(words, 0)
		return nil, fmt.Errorf("the broker is not ready: %w\n%s", err, words)
	}
	var ready struct {
		Namesrv string
		Brokers []struct{ Address string }
	}
	if err = json.Unmarshal(line, &ready); err != nil {
		return nil, err
	}
	resolver := primitive.NewPassthroughResolver([]string{ready.Namesrv})
	operator, err := admin.NewAdmin(admin.WithResolver(resolver))
	return &server{ready.Namesrv, ready.Brokers[0].Address, log, operator}, err
}

func size(file *os.File) int64 {
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
