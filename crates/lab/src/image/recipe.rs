//! The recipe of an image made from Debian packages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::cache;
use crate::image::archive::{self, Configuration};
use crate::image::{rootfs, sources};
use crate::progress::Progress;

/// The recipe's name in its directory.
const FILE: &str = "image.yaml";
/// Raised when the same recipe would give another image.
const FORMAT: &[u8] = b"1";

/// What an image is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The name that pods use, such as `localhost/windlass-galera:1`.
    pub name: String,
    /// The Debian suite, such as `bookworm`.
    pub suite: String,
    /// Packages to install; what they depend on comes along, what they recommend does not.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Files to copy.
    #[serde(default)]
    pub files: Vec<RecipeFile>,
    /// Directories to make.
    #[serde(default)]
    pub directories: Vec<Directory>,
    /// Symbolic links to make, also in place of files of the packages.
    #[serde(default)]
    pub links: Vec<Link>,
    /// The user that runs containers: `uid` or `uid:gid`.
    pub user: String,
    /// The program that containers run.
    pub entrypoint: Vec<String>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Paths to leave out: `*` stands for any part of a path, so `/usr/share/doc/*` is a whole tree.
    #[serde(default)]
    pub remove: Vec<String>,
    /// Further images of the same content.
    #[serde(default)]
    pub also: Vec<Also>,
}

/// A further image, which is called and started otherwise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Also {
    /// The name that pods use.
    pub name: String,
    /// The program that containers run; that of the recipe when left out.
    #[serde(default)]
    pub entrypoint: Option<Vec<String>>,
    /// Environment variables that are other, or more, than those of the recipe.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A file that is copied into the image.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeFile {
    /// Where it is, relative to the recipe.
    pub from: PathBuf,
    /// Its absolute path in the image.
    pub to: String,
    /// Its mode in octal, such as `"0755"`; 0644 when left out.
    #[serde(default)]
    pub mode: Option<String>,
}

/// A directory that is made in the image.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    /// Its absolute path in the image.
    pub path: String,
    /// Its mode in octal, such as `"0750"`; 0755 when left out.
    #[serde(default)]
    pub mode: Option<String>,
    /// The numeric user, and group, that owns it; root when left out.
    #[serde(default)]
    pub owner: u32,
}

/// A symbolic link that is made in the image.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its absolute path in the image.
    pub path: String,
    /// Where it leads.
    pub to: String,
}

/// Makes the archive from the recipe in `directory`, or finds it in the cache.
pub async fn from_recipe(directory: &Path) -> Result<PathBuf> {
    from_recipe_with(directory, &Progress::new()).await
}

/// As [`from_recipe`], telling `progress`.
pub async fn from_recipe_with(directory: &Path, progress: &Progress) -> Result<PathBuf> {
    let path = directory.join(FILE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read the image recipe {}", path.display()))?;
    make(&text, directory, progress).await.with_context(|| format!("the image of {} cannot be made", path.display()))
}

/// Makes the archive from the text of a recipe whose files are relative to `directory`, or finds it in the cache.
pub(crate) async fn make(text: &str, directory: &Path, progress: &Progress) -> Result<PathBuf> {
    let recipe = parse(text).context("the recipe is wrong")?;
    let key = key(text, &recipe, directory)?;
    let images = cache::root()?.join("images");
    std::fs::create_dir_all(&images).with_context(|| format!("cannot create {}", images.display()))?;
    let archive = images.join(format!("recipe-{key}.tar"));
    let _lock = cache::lock(archive.with_extension("lock"), {
        let (progress, name) = (*progress, recipe.name.clone());
        move || progress.note(&format!("{name} is being built by somebody else: waiting"))
    })
    .await?;
    if archive.exists() {
        return Ok(archive);
    }
    progress
        .step(format!("image {} from {} packages of {}", recipe.name, recipe.packages.len(), recipe.suite), async {
            let sources = sources::of_suite(&recipe.suite).await?;
            let root = archive.with_extension("root");
            rootfs::bootstrap(&recipe, &sources, &root).await?;
            let layer = archive.with_extension("layer");
            let configurations = configurations(&recipe);
            let (recipe, directory, archive) = (recipe.clone(), directory.to_owned(), archive.clone());
            tokio::task::spawn_blocking(move || {
                rootfs::layer(&recipe, &directory, &root, &layer)?;
                archive::write(&configurations, &layer, &archive)?;
                cache::remove(&root)?;
                cache::remove(&layer)
            })
            .await
            .context("the task that packs the image ended early")?
        })
        .await?;
    Ok(archive)
}

/// The image that the recipe names, and the further ones.
fn configurations(recipe: &Recipe) -> Vec<Configuration> {
    let first = Also { name: recipe.name.clone(), entrypoint: None, env: BTreeMap::new() };
    std::iter::once(&first)
        .chain(&recipe.also)
        .map(|image| {
            let mut variables = recipe.env.clone();
            variables.extend(image.env.clone());
            let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
            let variables = variables.iter().map(|(name, value)| format!("{name}={value}"));
            Configuration {
                reference: image.name.clone(),
                user: recipe.user.clone(),
                entrypoint: image.entrypoint.as_ref().unwrap_or(&recipe.entrypoint).clone(),
                environment: std::iter::once(path).chain(variables).collect(),
            }
        })
        .collect()
}

fn parse(text: &str) -> Result<Recipe> {
    let recipe: Recipe = serde_saphyr::from_str(text)?;
    let numeric = recipe.user.split(':').all(|part| part.parse::<u32>().is_ok());
    if !numeric || recipe.user.split(':').count() > 2 {
        bail!(
            "`user` is `{}`: it must be a number or two, such as `10000:10000`, so that a pod can be seen not to run as root",
            recipe.user
        );
    }
    let files = recipe.files.iter().map(|file| &file.to);
    let directories = recipe.directories.iter().map(|directory| &directory.path);
    for target in files.chain(directories).chain(recipe.links.iter().map(|link| &link.path)) {
        if !target.starts_with('/') || target.split('/').any(|part| part == "..") {
            bail!("`{target}` is no absolute path in the image");
        }
    }
    for mode in recipe.files.iter().map(|file| &file.mode).chain(recipe.directories.iter().map(|directory| &directory.mode)) {
        octal(mode.as_deref(), 0)?;
    }
    Ok(recipe)
}

/// A mode in octal digits.
pub(super) fn octal(text: Option<&str>, otherwise: u32) -> Result<u32> {
    match text {
        None => Ok(otherwise),
        Some(text) => u32::from_str_radix(text.trim_start_matches("0o"), 8)
            .ok()
            .filter(|mode| *mode <= 0o7777)
            .with_context(|| format!("`{text}` is no mode: write octal digits in quotes, such as \"0755\"")),
    }
}

fn key(text: &str, recipe: &Recipe, directory: &Path) -> Result<String> {
    let mut key = cache::Key::default()
        .add("format", FORMAT)
        .add("architecture", std::env::consts::ARCH.as_bytes())
        .add("recipe", text.as_bytes());
    for file in &recipe.files {
        let path = directory.join(&file.from);
        let bytes =
            std::fs::read(&path).with_context(|| format!("the image recipe names {}, which cannot be read", path.display()))?;
        key = key.add(&file.to, &bytes);
    }
    Ok(key.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = "\
name: localhost/example:1
suite: bookworm
packages: [dash]
files: [{from: run.sh, to: /run.sh, mode: '0755'}]
directories: [{path: /data, mode: '0750', owner: 10000}]
user: 10000:10000
links: [{path: /start, to: /run.sh}]
entrypoint: [/run.sh]
env: {LANG: C.UTF-8, COLOUR: red}
also: [{name: localhost/example:2, env: {COLOUR: blue}}, {name: localhost/sample:1, entrypoint: [/start]}]
";

    #[test]
    fn a_whole_recipe_is_read() {
        let recipe = parse(RECIPE).unwrap();
        assert_eq!(recipe.directories[0].owner, 10000);
        assert_eq!(octal(recipe.files[0].mode.as_deref(), 0).unwrap(), 0o755);
        assert!(recipe.remove.is_empty());
    }

    #[test]
    fn further_images_have_what_is_said_of_them_and_else_what_the_recipe_says() {
        let images = configurations(&parse(RECIPE).unwrap());
        let names: Vec<&str> = images.iter().map(|image| image.reference.as_str()).collect();
        assert_eq!(names, ["localhost/example:1", "localhost/example:2", "localhost/sample:1"]);
        assert_eq!(images[0].environment[1..], ["COLOUR=red", "LANG=C.UTF-8"]);
        assert_eq!(images[1].environment[1..], ["COLOUR=blue", "LANG=C.UTF-8"]);
        assert_eq!((&images[1].entrypoint[0], &images[2].entrypoint[0]), (&"/run.sh".to_owned(), &"/start".to_owned()));
    }

    #[test]
    fn a_recipe_that_could_not_be_built_is_refused_with_the_reason() {
        for (from, to, reason) in [
            ("user: 10000:10000", "user: mysql", "must be a number"),
            ("to: /run.sh", "to: run.sh", "no absolute path"),
            ("to: /run.sh", "to: /a/../etc/passwd", "no absolute path"),
            ("path: /start", "path: start", "no absolute path"),
            ("mode: '0755'", "mode: rwx", "is no mode"),
            ("suite: bookworm", "sweet: bookworm", "sweet"),
        ] {
            let error = parse(&RECIPE.replace(from, to)).unwrap_err();
            assert!(format!("{error:#}").contains(reason), "{error:#}");
        }
    }
}
