package org.example;

import com.github.dockerjava.api.command.InspectContainerResponse;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.images.builder.Transferable;
import org.testcontainers.utility.DockerImageName;

/**
 * A RocketMQ broker in a container of Testcontainers: a name server and a broker whose messages go
 * with the container.
 *
 * <p>The broker is started when the port is known under which clients reach it from outside, as
 * that is what they are told.
 *
 * <pre>{@code
 * try (RocketbrokerContainer broker =
 *         new RocketbrokerContainer(DockerImageName.parse("example/rocketbroker:0.1.0"))) {
 *     broker.start();
 *     producer.setNamesrvAddr(broker.getNameServer());
 * }
 * }</pre>
 */
public class RocketbrokerContainer extends GenericContainer<RocketbrokerContainer> {
    private static final int NAME_SERVER = 9876;
    private static final int BROKER = 10911;
    private static final String SCRIPT = "/tmp/start.sh";

    public RocketbrokerContainer(DockerImageName image) {
        super(image);
        withExposedPorts(NAME_SERVER, BROKER);
        withCreateContainerCmdModifier(command -> command.withEntrypoint("sh", "-c"));
        withCommand("while [ ! -f " + SCRIPT + " ]; do sleep 0.1; done; exec sh " + SCRIPT);
        waitingFor(Wait.forLogMessage(".*ready: name server.*\\n", 1));
    }

    @Override
    protected void containerIsStarting(InspectContainerResponse container) {
        String address = getHost() + ":" + getMappedPort(BROKER);
        String command =
                "exec rocketbroker standalone --temporary --metrics-port off --advertise " + address;
        copyFileToContainer(Transferable.of(command + "\n"), SCRIPT);
    }

    /** The address that the program under test is given. */
    public String getNameServer() {
        return getHost() + ":" + getMappedPort(NAME_SERVER);
    }
}
