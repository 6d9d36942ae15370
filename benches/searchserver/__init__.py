"""Search servers for tests: OpenSearch and Elasticsearch, in a Java program of ours."""
