//! Modules that are layers of OCI artifacts, from containerd's content store.

use containerd_client::services::v1::{
    GetContainerRequest, GetImageRequest, InfoRequest, PluginsRequest, ReadContentRequest, ReadContentResponse,
};
use containerd_client::tonic::{Request, Streaming};
use containerd_client::{Client, with_namespace};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The time in which containerd answers: the kubelet waits no longer for a creation.
const PATIENCE: Duration = Duration::from_secs(120);
/// The media types of layers that are modules.
const MODULES: [&str; 3] = [
    "application/wasm",
    "application/vnd.wasm.content.layer.v1+wasm",
    "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
];
/// The architecture of the images and platforms of modules.
const WASM: &str = "wasm";
/// The bytes of a manifest or a configuration, at most.
const MAX_DOCUMENT: u64 = 4 << 20;
/// The bytes of a module, at most: the format has sizes of 32 bits.
const MAX_MODULE: u64 = u32::MAX as u64;

/// The kind of containerd's plugin that keeps content.
const CONTENT: &str = "type==io.containerd.content.v1";

/// A module that is a layer, in a file that only root can change.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Layer {
    pub file: PathBuf,
    /// containerd's name of the content, e.g. `sha256:…`, if the file is containerd's own, which it has checked against that.
    pub digest: Option<String>,
}

/// A manifest, or an index of manifests.
#[derive(Deserialize)]
struct Document {
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    platform: Option<Platform>,
}

/// A platform, and what of an image's configuration says it.
#[derive(Clone, Deserialize)]
struct Platform {
    architecture: String,
}

/// Returns the module of a container whose image is an artifact. `None` if it is another image. If containerd's content is not in files
/// of this machine, the module is written to `copy`.
///
/// # Errors
/// containerd cannot be asked or does not answer, the artifact does not have exactly one module, or that cannot be written: a message.
pub(crate) async fn find(address: &str, namespace: &str, id: &str, copy: PathBuf) -> Result<Option<Layer>, String> {
    let late = |_| Err(format!("{address}: containerd did not give the image's module in {} s", PATIENCE.as_secs()));
    timeout(PATIENCE, search(address, namespace, id, copy)).await.unwrap_or_else(late)
}

/// [`find`], however long containerd takes.
async fn search(address: &str, namespace: &str, id: &str, copy: PathBuf) -> Result<Option<Layer>, String> {
    let client = Client::from_path(address).await.map_err(|error| format!("{address}: {error}"))?;
    // Both at once, since a start waits for each request.
    let (root, image) = tokio::join!(directory(&client, namespace), image_of(&client, namespace, id));
    let Some(image) = image? else { return Ok(None) };
    let store = Store { client, namespace, root };
    let mut manifest = store.document(&image).await?;
    let for_modules = |found: &&Descriptor| found.platform.as_ref().is_some_and(|platform| platform.architecture == WASM);
    if let Some(chosen) = manifest.manifests.iter().flatten().find(for_modules) {
        manifest = store.document(&chosen.digest.clone()).await?;
    }
    let Some(config) = &manifest.config else { return Ok(None) };
    let config = store.small(&config.digest).await?;
    if serde_json::from_slice(&config).ok().is_none_or(|config: Platform| config.architecture != WASM) {
        return Ok(None);
    }
    let layers = manifest.layers.iter().flatten();
    let modules: Vec<&Descriptor> = layers.filter(|layer| MODULES.contains(&layer.media_type.as_str())).collect();
    let [module] = modules.as_slice() else {
        return Err(format!("expected an artifact with one layer that is a module, found {}", modules.len()));
    };
    let digest = module.digest.clone();
    if let Some(file) = store.file(&digest)
        && store.is_ours(&digest).await
    {
        return Ok(Some(Layer { file, digest: Some(digest) }));
    }
    let mut content = store.content(&digest, MAX_MODULE).await?;
    let file = Arc::new(File::create(&copy).map_err(|error| error.to_string())?);
    while let Some(part) = content.next().await? {
        let file = file.clone();
        let written = spawn_blocking(move || (&*file).write_all(&part)).await.map_err(|error| error.to_string())?;
        written.map_err(|error| error.to_string())?;
    }
    Ok(Some(Layer { file: copy, digest: None }))
}

/// The digest of the manifest of a container's image; `None` without image.
async fn image_of(client: &Client, namespace: &str, id: &str) -> Result<Option<String>, String> {
    let request = with_namespace!(GetContainerRequest { id: id.into() }, namespace);
    let container = client.containers().get(request).await.map_err(|error| error.to_string())?;
    let name = container.into_inner().container.map(|container| container.image).filter(|name| !name.is_empty());
    let Some(name) = name else { return Ok(None) };
    let request = with_namespace!(GetImageRequest { name }, namespace);
    let image = client.images().get(request).await.map_err(|error| error.to_string())?;
    Ok(image.into_inner().image.and_then(|image| image.target).map(|target| target.digest))
}

/// The directory in which containerd keeps content, as it does by default.
async fn directory(client: &Client, namespace: &str) -> Option<PathBuf> {
    let request = with_namespace!(PluginsRequest { filters: vec![CONTENT.into()] }, namespace);
    let found = client.introspection().plugins(request).await.ok()?.into_inner();
    found.plugins.iter().find_map(|plugin| plugin.exports.get("root")).map(PathBuf::from)
}

/// containerd's content store.
struct Store<'n> {
    client: Client,
    namespace: &'n str,
    /// The directory of its content, if it is in one.
    root: Option<PathBuf>,
}

impl Store<'_> {
    /// The file of content.
    fn file(&self, digest: &str) -> Option<PathBuf> {
        let (algorithm, hash) = digest.split_once(':')?;
        if ![algorithm, hash].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
            return None;
        }
        let path = self.root.as_ref()?.join("blobs").join(algorithm).join(hash);
        path.is_file().then_some(path)
    }

    /// Whether this namespace has the content: containerd may be configured to keep the content of others from it.
    async fn is_ours(&self, digest: &str) -> bool {
        let namespace = self.namespace;
        let request = with_namespace!(InfoRequest { digest: digest.into() }, namespace);
        self.client.content().info(request).await.is_ok()
    }

    async fn document(&self, digest: &str) -> Result<Document, String> {
        let bytes = self.small(digest).await?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{digest}: expected a manifest: {error}"))
    }

    /// Reads a manifest or a configuration, from its file if there is one. Whether the namespace has it is not asked: what matters is
    /// whether it has the module that they lead to.
    async fn small(&self, digest: &str) -> Result<Vec<u8>, String> {
        let file = self.file(digest).filter(|file| file.metadata().is_ok_and(|data| data.len() <= MAX_DOCUMENT));
        match file.and_then(|file| std::fs::read(file).ok()) {
            Some(bytes) => Ok(bytes),
            None => {
                let (mut content, mut bytes) = (self.content(digest, MAX_DOCUMENT).await?, Vec::new());
                while let Some(part) = content.next().await? {
                    bytes.extend(part);
                }
                Ok(bytes)
            }
        }
    }

    /// Asks for content of at most `most` bytes.
    async fn content(&self, digest: &str, most: u64) -> Result<Content, String> {
        let namespace = self.namespace;
        let request = ReadContentRequest { digest: digest.into(), offset: 0, size: 0 };
        let request = with_namespace!(request, namespace);
        let parts = self.client.content().read(request).await.map_err(|error| format!("{digest}: {error}"))?;
        Ok(Content { digest: digest.into(), parts: parts.into_inner(), most, left: most })
    }
}

/// Content that arrives in parts.
struct Content {
    digest: String,
    parts: Streaming<ReadContentResponse>,
    most: u64,
    left: u64,
}

impl Content {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        let Content { digest, most, .. } = self;
        let part = self.parts.message().await.map_err(|error| format!("{digest}: {error}"))?;
        let Some(part) = part else { return Ok(None) };
        let left = self.left.checked_sub(part.data.len() as u64);
        self.left = left.ok_or_else(|| format!("{digest}: it has more than {most} bytes"))?;
        Ok(Some(part.data))
    }
}
