//! Modules that are layers of OCI artifacts, from containerd's content store.

use containerd_client::services::v1::{GetContainerRequest, GetImageRequest, ReadContentRequest};
use containerd_client::tonic::Request;
use containerd_client::{Client, with_namespace};
use serde::Deserialize;

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

/// A manifest, or an index of manifests.
#[derive(Deserialize)]
struct Document {
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
    #[serde(default)]
    manifests: Vec<Descriptor>,
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

/// Returns the module of a container whose image is an artifact. `None` if it is another image.
///
/// # Errors
/// containerd cannot be asked, or the artifact does not have exactly one module: a message.
pub(crate) async fn module(address: &str, namespace: &str, id: &str) -> Result<Option<Vec<u8>>, String> {
    let client = Client::from_path(address).await.map_err(|error| format!("{address}: {error}"))?;
    let store = Store { client, namespace };
    let Some(mut manifest) = store.manifest_of(id).await? else { return Ok(None) };
    let for_modules = |found: &&Descriptor| found.platform.as_ref().is_some_and(|platform| platform.architecture == WASM);
    if let Some(chosen) = manifest.manifests.iter().find(for_modules) {
        manifest = store.document(&chosen.digest.clone()).await?;
    }
    let Some(config) = &manifest.config else { return Ok(None) };
    let config = store.content(&config.digest, MAX_DOCUMENT).await?;
    if serde_json::from_slice(&config).ok().is_none_or(|config: Platform| config.architecture != WASM) {
        return Ok(None);
    }
    let modules: Vec<&Descriptor> = manifest.layers.iter().filter(|layer| MODULES.contains(&layer.media_type.as_str())).collect();
    match modules.as_slice() {
        [module] => store.content(&module.digest, MAX_MODULE).await.map(Some),
        _ => Err(format!("expected an artifact with one layer that is a module, found {}", modules.len())),
    }
}

/// containerd's content store.
struct Store<'n> {
    client: Client,
    namespace: &'n str,
}

impl Store<'_> {
    /// The manifest of a container's image; `None` without image.
    async fn manifest_of(&self, id: &str) -> Result<Option<Document>, String> {
        let namespace = self.namespace;
        let request = with_namespace!(GetContainerRequest { id: id.into() }, namespace);
        let container = self.client.containers().get(request).await.map_err(|error| error.to_string())?;
        let name = container.into_inner().container.map(|container| container.image).filter(|name| !name.is_empty());
        let Some(name) = name else { return Ok(None) };
        let request = with_namespace!(GetImageRequest { name }, namespace);
        let image = self.client.images().get(request).await.map_err(|error| error.to_string())?;
        match image.into_inner().image.and_then(|image| image.target) {
            Some(target) => self.document(&target.digest).await.map(Some),
            None => Ok(None),
        }
    }

    async fn document(&self, digest: &str) -> Result<Document, String> {
        let bytes = self.content(digest, MAX_DOCUMENT).await?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{digest}: expected a manifest: {error}"))
    }

    /// Reads content of at most `most` bytes.
    async fn content(&self, digest: &str, most: u64) -> Result<Vec<u8>, String> {
        let namespace = self.namespace;
        let request = ReadContentRequest { digest: digest.into(), offset: 0, size: 0 };
        let request = with_namespace!(request, namespace);
        let parts = self.client.content().read(request).await.map_err(|error| format!("{digest}: {error}"))?;
        let (mut parts, mut bytes) = (parts.into_inner(), Vec::new());
        while let Some(part) = parts.message().await.map_err(|error| format!("{digest}: {error}"))? {
            bytes.extend(part.data);
            if bytes.len() as u64 > most {
                return Err(format!("{digest}: it has more than {most} bytes"));
            }
        }
        Ok(bytes)
    }
}
