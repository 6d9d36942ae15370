"""Downloads over emulated satellite links, direct and through a proxy beside the server."""
