#define JVERSION "4"
#define JCOPYRIGHT ""
#define JCOPYRIGHT_SHORT ""
