import java.nio.file.Path;
import java.util.List;
import org.opensearch.cluster.service.ClusterService;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** A node by itself on loopback, on ports that it chooses. It ends when its standard input does. */
public class OpenSearch extends Node {
    private OpenSearch(Environment environment) {
        super(environment, List.of(Netty4Plugin.class, ReindexPlugin.class), true);
    }

    /** Marks log lines by node, and can't do so twice in a process: there is one node. */
    @Override
    protected void configureNodeAndClusterIdStateListener(ClusterService service) { }

    public static void main(String[] words) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", words[0])
            .put("node.name", "linerate")
            .put("cluster.name", "linerate")
            .put("network.host", "127.0.0.1")
            .put("http.port", "0")
            .put("transport.port", "0")
            .put("node.portsfile", true)
            .put("discovery.type", "single-node")
            .put("action.auto_create_index", false)
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        Node node = new OpenSearch(new Environment(settings, Path.of(words[0], "config")));
        node.start();
        while (System.in.read() >= 0) { }
        node.close();
        System.exit(0);
    }
}
