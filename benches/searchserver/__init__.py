"""Search servers for tests: OpenSearch, in a Java program of ours."""
