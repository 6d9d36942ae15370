import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.opensearch.cluster.service.ClusterService;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;
import org.opensearch.transport.Netty4Plugin;

/**
 * A node by itself on loopback, on ports that it chooses. It ends when its standard input does. It is compiled for
 * OpenSearch as it is, and for Elasticsearch with other names of packages.
 */
public class Search extends Node {
    private Search(Environment environment, List<Class<? extends Plugin>> plugins) {
        super(environment, plugins, true);
    }

    /** Marks log lines by node, and can't do so twice in a process: there is one node. */
    @Override
    protected void configureNodeAndClusterIdStateListener(ClusterService service) { }

    /** The first word is the node's home. Each other is a setting, NAME=VALUE, or a further plugin, plugin=CLASS. */
    public static void main(String[] words) throws Exception {
        List<Class<? extends Plugin>> plugins = new ArrayList<>(List.of(Netty4Plugin.class, ReindexPlugin.class));
        Settings.Builder builder = Settings.builder()
            .put("path.home", words[0])
            .put("node.name", "linerate")
            .put("cluster.name", "linerate")
            .put("network.host", "127.0.0.1")
            .put("http.port", "0")
            .put("transport.port", "0")
            .put("node.portsfile", true)
            .put("discovery.type", "single-node")
            .put("action.auto_create_index", false)
            .put("cluster.routing.allocation.disk.threshold_enabled", false);
        for (String word : Arrays.asList(words).subList(1, words.length)) {
            String[] pair = word.split("=", 2);
            if (pair[0].equals("plugin")) {
                plugins.add(Class.forName(pair[1]).asSubclass(Plugin.class));
            } else {
                builder.put(pair[0], pair[1]);
            }
        }
        Node node = new Search(new Environment(builder.build(), Path.of(words[0], "config")), plugins);
        node.start();
        while (System.in.read() >= 0) { }
        node.close();
        System.exit(0);
    }
}
