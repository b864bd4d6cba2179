"""What tests of several files need."""

import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory):
    """The folders of tiny pretrained networks, by their kind."""
    from .pretrained_stacks import Folders

    return Folders(tmp_path_factory.mktemp("weights"))
