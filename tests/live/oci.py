"""Makes small OCI image layouts, layer by layer, for the image tests."""
import gzip
import hashlib
import io
import json
import os
import tarfile

BUSYBOX = "/bin/busybox"
APPLETS = ("sh ls cat echo sleep true false id env printenv pwd mkdir rm cp mv ln chmod chown touch head tail wc grep sed "
           "ps kill find sort uname hostname date test printf tr cut which adduser addgroup su seq").split()


def busybox_files():
    with open(BUSYBOX, "rb") as file:
        yield "bin/busybox", file.read()
    for name in APPLETS:
        yield "bin/" + name, ("link", "busybox")


def layer(files, gz=True):
    """A tar of (path, bytes | ("link", target) | "dir" ) pairs: (bytes, diff id)."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for path, what in files:
            info = tarfile.TarInfo(path)
            info.mode = 0o755
            if what == "dir":
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            elif isinstance(what, tuple):
                info.type, info.linkname = tarfile.SYMTYPE, what[1]
                tar.addfile(info)
            else:
                info.size = len(what)
                tar.addfile(info, io.BytesIO(what))
    data = raw.getvalue()
    diff = "sha256:" + hashlib.sha256(data).hexdigest()
    return (gzip.compress(data, 1, mtime=0) if gz else data), diff


def write_layout(folder, layers, config=None, tag="latest"):
    """An OCI layout of these file lists at `folder`."""
    blobs = os.path.join(folder, "blobs", "sha256")
    os.makedirs(blobs, exist_ok=True)

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(blobs, digest), "wb") as file:
            file.write(data)
        return {"digest": "sha256:" + digest, "size": len(data)}

    made = [layer(files) for files in layers]
    image = {"architecture": "amd64", "os": "linux", "config": config or {},
             "rootfs": {"type": "layers", "diff_ids": [diff for _, diff in made]}}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": dict(blob(json.dumps(image).encode()), mediaType="application/vnd.oci.image.config.v1+json"),
                "layers": [dict(blob(data), mediaType="application/vnd.oci.image.layer.v1.tar+gzip") for data, _ in made]}
    entry = dict(blob(json.dumps(manifest).encode()), mediaType="application/vnd.oci.image.manifest.v1+json",
                 annotations={"org.opencontainers.image.ref.name": tag})
    with open(os.path.join(folder, "index.json"), "w", encoding="ascii") as file:
        json.dump({"schemaVersion": 2, "manifests": [entry]}, file)
    with open(os.path.join(folder, "oci-layout"), "w", encoding="ascii") as file:
        json.dump({"imageLayoutVersion": "1.0.0"}, file)


def fifty_layers():
    """Fifty layers: each adds a file and rewrites one; some remove what came before, one empties a folder."""
    yield list(busybox_files()) + [("data", "dir"), ("data/counter", b"0"), ("gone", "dir"), ("gone/a", b"a"), ("gone/b", b"b")]
    for number in range(1, 50):
        files = [("data/%d" % number, b"%d" % number), ("data/counter", b"%d" % number)]
        if number % 7 == 0:
            files.append(("data/.wh.%d" % (number - 1), b""))
        if number == 30:
            files += [("gone/.wh..wh..opq", b""), ("gone/c", b"c")]
        if number == 40:
            files.append(("data/6", b"back"))
        yield files
